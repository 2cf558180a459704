"""Flow: right on motions known in closed form, exact at rest, coded and stored as documented."""

import cv2
import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.networks.names import NO_MOTION
from actionspan.video import optical_flow as flow
from actionspan.video.optical_flow import CODES, compute_flow, quantise, write_flow
from actionspan.video.settings import FlowSettings

CLASSICAL = [
    FlowSettings(algorithm="dis"),
    FlowSettings(algorithm="dis", preset="fast"),
    FlowSettings(algorithm="dis", preset="ultrafast"),
    FlowSettings(algorithm="farneback"),
    FlowSettings(algorithm="tvl1"),
]
NAMES = [f"{each.algorithm}-{each.preset}" for each in CLASSICAL]
SHIFTS = [(3, 0), (-3, 0), (0, 2), (0, -2), (2, -1)]


def texture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return a smooth random texture with detail at several scales."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=(3, height, width)).astype(np.float32)
    image = sum(
        cv2.GaussianBlur(one, (0, 0), s) * s for one, s in zip(noise, (1.5, 3, 6), strict=True)
    )
    return cv2.normalize(image, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


def dequantise(codes: np.ndarray, bound: float) -> np.ndarray:
    """Return the displacements in pixels that bytes code, to within bound / 254."""
    return (codes.astype(np.float32) - NO_MOTION) * np.float32(bound / CODES)


def moved(x: int, y: int, frames: int = 2, height: int = 96, width: int = 128) -> np.ndarray:
    """Return frames (n, h, w) whose content moves by x to the right and y down each frame."""
    border = 32
    image = texture(height + 2 * border, width + 2 * border)
    return np.stack(
        [image[border - n * y :, border - n * x :][:height, :width] for n in range(frames)]
    )


@pytest.mark.parametrize("chosen", CLASSICAL, ids=NAMES)
@pytest.mark.parametrize("shift", SHIFTS)
def test_flow_of_a_translation_is_the_translation(chosen, shift):
    coded, magnitude = compute_flow(moved(*shift)[None], chosen)
    inner = dequantise(coded, chosen.bound)[0, :, 16:-16, 16:-16]  # (2, h, w): x, y
    tolerance = 0.6 if chosen.preset == "ultrafast" else 0.25
    assert abs(np.median(inner[0]) - shift[0]) < tolerance
    assert abs(np.median(inner[1]) - shift[1]) < tolerance
    assert magnitude[0] == pytest.approx(np.hypot(*shift), rel=0.25)


@pytest.mark.parametrize("chosen", CLASSICAL, ids=NAMES)
def test_no_motion_is_exactly_its_code(chosen):
    coded, magnitude = compute_flow(moved(0, 0, frames=3)[None], chosen)
    assert coded.shape == (1, 4, 96, 128)
    assert (coded == NO_MOTION).all()
    assert magnitude[0] < (0.001 if chosen.algorithm == "farneback" else 1e-6)


def test_x_and_y_take_turns_pair_by_pair():
    """Frames move by (3, 0), then (0, 2): planes are x0, y0, x1, y1."""
    border = 16
    image = texture(128, 160)
    corners = [(0, 0), (3, 0), (3, 2)]
    gray = np.stack([image[border - y :, border - x :][:96, :128] for x, y in corners])
    coded, magnitude = compute_flow(gray[None], FlowSettings())
    assert coded.shape == (1, 4, 96, 128)
    medians = np.median(dequantise(coded[0, :, 16:-16, 16:-16], 20.0), axis=(1, 2))
    np.testing.assert_allclose(medians, [3, 0, 0, 2], atol=0.25)
    assert magnitude[0] == pytest.approx(2.5, rel=0.1)


def test_snippets_do_not_see_each_other():
    gray = np.stack([moved(3, 0), moved(-2, 1), moved(0, 0)])
    together, lengths = compute_flow(gray, FlowSettings())
    for row in (2, 0, 1):
        alone, length = compute_flow(gray[row : row + 1], FlowSettings())
        np.testing.assert_array_equal(alone[0], together[row])
        assert length[0] == lengths[row]


@pytest.mark.parametrize("chosen", CLASSICAL, ids=NAMES)
def test_flow_does_not_depend_on_the_sizes_of_the_videos_before(chosen):
    """Found where `propose` met videos in another order than a workflow."""
    small, large = (moved(3, 1, height=side, width=side)[None] for side in (32, 96))
    flow.estimator.cache_clear()
    alone = compute_flow(large, chosen)
    compute_flow(small, chosen)
    for one, other in zip(compute_flow(large, chosen), alone, strict=True):
        np.testing.assert_array_equal(one, other)


@given(bound=st.floats(0.5, 200), fraction=st.lists(st.floats(-1, 1), min_size=1, max_size=50))
def test_codes_are_within_half_a_code(bound, fraction):
    values = np.array(fraction, np.float32) * np.float32(bound)
    codes = quantise(values, bound)
    assert codes.dtype == np.uint8
    assert codes.min() >= 1
    assert np.abs(dequantise(codes, bound) - values).max() <= bound / 254 * 1.001
    np.testing.assert_array_equal(quantise(dequantise(codes, bound), bound), codes)
    # A mirrored flow has mirrored codes.
    np.testing.assert_array_equal(256 - codes.astype(int), quantise(-values, bound).astype(int))


@pytest.mark.parametrize(
    ("value", "code"), [(0, 128), (20, 255), (-20, 1), (1e6, 255), (-1e6, 1), (20 / 127, 129)]
)
def test_codes_in_closed_form(value, code):
    assert quantise(np.float32([value]), 20.0)[0] == code


def test_tiny_frames_are_an_error_in_words():
    """OpenCV's DIS crashes the process on some, e.g. 300×24 with the preset fast."""
    with pytest.raises(InputError, match="300×24 pixels are too small"):
        compute_flow(np.zeros((1, 2, 24, 300), np.uint8), FlowSettings(preset="fast"))


@pytest.mark.parametrize("chosen", CLASSICAL, ids=NAMES)
@pytest.mark.parametrize("size", [(32, 32), (32, 300), (300, 32), (33, 47), (50, 50)])
def test_small_and_odd_frames_work(chosen, size):
    gray = np.random.default_rng(0).integers(0, 255, (1, 2, *size), dtype=np.uint8)
    coded, magnitude = compute_flow(gray, chosen)
    assert coded.shape == (1, 2, *size)
    assert np.isfinite(magnitude).all()


def test_tvl1_without_the_contrib_wheel_names_the_command(monkeypatch):
    monkeypatch.delattr(cv2, "optflow")
    flow.estimator.cache_clear()
    with pytest.raises(InputError, match="pip install opencv-contrib-python-headless"):
        compute_flow(moved(1, 0)[None], FlowSettings(algorithm="tvl1"))


def frames_file(path, names=("a", "b"), count=20):
    """Write what `video frames` would: snippets of a texture that moves."""
    with h5py.File(path, "w") as file:
        file.attrs["digest"] = "frames"
        for place, name in enumerate(names):
            group = file.create_group(name)
            gray = np.stack([moved(n % 3 - place, 1, height=32, width=48) for n in range(count)])
            group["gray"] = gray
            group["time"] = np.arange(count) * 0.64 + 0.32
            group["frame_difference"] = np.full(count, 0.1, np.float32)
            group.attrs["sha256"] = f"sha of {name}"
            group.attrs["fps"] = 25.0
    return path


def test_what_is_written(tmp_path):
    """More snippets than a block; the codes are those of the function."""
    chosen = FlowSettings(bound=8.0)
    frames = frames_file(tmp_path / "frames.h5")
    with h5py.File(frames) as file, h5py.File(tmp_path / "flow.h5", "w") as out:
        write_flow(file["a"], out.create_group("a"), chosen)
        coded, magnitude = compute_flow(file["a"]["gray"][:], chosen)
        np.testing.assert_array_equal(out["a/flow"], coded)
        np.testing.assert_array_equal(out["a/flow_magnitude"], magnitude)
        assert out["a/flow"].attrs["bound"] == 8.0
        assert out["a/flow"].dtype == np.uint8
        assert out["a/flow_magnitude"].dtype == np.float32
        np.testing.assert_array_equal(out["a/time"], file["a/time"])
        np.testing.assert_array_equal(out["a/frame_difference"], file["a/frame_difference"])
        assert dict(out["a"].attrs) == {"sha256": "sha of a", "fps": 25.0}


def test_the_magnitude_does_not_depend_on_where_arrays_lie_in_memory(monkeypatch):
    """OpenCV's own differs in the last bit by the alignment of its arrays."""
    kept = []
    for seed in range(40):
        steps = np.random.default_rng(seed).normal(size=(1, 61, 83, 2)).astype(np.float32)
        monkeypatch.setattr(flow, "estimator", lambda settings, steps=steps: lambda gray: steps)
        kept.append(np.empty(1000 + 7 * seed, np.float32))  # moves what is allocated next
        expected = np.sqrt(steps[..., 0] ** 2 + steps[..., 1] ** 2).mean()
        found = compute_flow(np.zeros((1, 2, 61, 83), np.uint8), FlowSettings())[1][0]
        assert found == expected
