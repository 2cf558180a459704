"""The clip stream: its windows, its vectors' times, and its place beside the other streams."""

import h5py
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.clips import ClipEncoder, Clips, Windows, read_clips
from actionspan.features.collect import collect
from actionspan.features.extraction import TwoStream, extract
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.features.store import open_features, read_description, read_transform
from actionspan.networks.i3d import I3D


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "i3d.pt"
    torch.save(I3D(classes=5).state_dict(), path)
    return path


@pytest.fixture
def settings(weights):
    def make(**options):
        chosen = {
            "flow_encoder": "flow_histogram",
            "input_size": 32,
            "clip_encoder": "i3d",
            "clip_weights": weights,
            "clip_size": 32,
            "clip_window": 32,
            "clip_stride": 16,
            "device": "cpu",
        }
        return EncoderSettings(**(chosen | options))

    return make


@pytest.fixture
def encoder(settings):
    def make(**options):
        return ClipEncoder(settings(**options))

    return make


def mean_of_eight(clips):
    """Stand for a network: the mean of every 8 frames."""
    return clips.mean(dim=(1, 3, 4)).reshape(1, -1, 8).mean(2)[..., None]


def flat_frames(levels) -> np.ndarray:
    return np.broadcast_to(
        np.asarray(levels, np.uint8)[:, None, None, None], (len(levels), 8, 8, 3)
    )


@pytest.mark.parametrize(("window", "stride"), [(8, 8), (32, 16), (64, 64), (128, 112)])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 65, 120, 300])
def test_windows_cover_a_video_once(count, window, stride):
    margin = (window - stride) // 2
    cut = Windows(window, stride, each=8)
    windows = [cut.at(start, count) for start in range(0, count, stride)]
    assert all(len(one) % 8 == 0 and len(one) <= window for one in windows)
    kept = np.concatenate([one[margin : len(one) - margin] for one in windows])
    assert kept[:count].tolist() == list(range(count))
    assert len(kept) == -(-count // 8) * 8
    assert (kept[count:] == count - 1).all()  # what fills up the last vector
    for one, start in zip(windows, range(0, count, stride), strict=True):
        around = np.arange(start - margin, start - margin + len(one))
        assert one.tolist() == np.clip(around, 0, count - 1).tolist()


@pytest.mark.parametrize(("window", "stride"), [(8, 8), (32, 16), (32, 32), (64, 48)])
def test_each_vector_is_of_its_own_eight_frames(encoder, rng, window, stride):
    encode = encoder(clip_window=window, clip_stride=stride, runtime="eager")
    encode.run.network = mean_of_eight
    rows = np.sort(rng.integers(0, 40, 100))  # some frames are several samples, some none
    levels = rng.integers(0, 256, 40)
    vectors = encode.vectors(flat_frames(levels), rows)
    samples = np.append(levels[rows], [levels[rows[-1]]] * 4) / 127.5 - 1
    np.testing.assert_allclose(vectors[:, 0], samples.reshape(-1, 8).mean(axis=1), atol=1e-5)


def test_snippets_get_the_vector_of_their_time(encoder):
    """Levels that rise evenly are those at the snippets' own times, but for the ends."""
    encode = encoder(runtime="eager")
    encode.run.network = mean_of_eight
    levels, times = np.arange(200), np.array([0.0, 1.0, 2.345, 7.0])
    found = encode(Clips(flat_frames(levels), np.arange(200), 25.0, times))[:, 0]
    expected = np.clip(times * 25, 3.5, 195.5) / 127.5 - 1
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_network_gives_a_vector_for_8_frames_and_repeats_to_the_bit(encoder, rng):
    frames = rng.integers(0, 256, (50, 40, 56, 3), np.uint8)
    encode = encoder()
    vectors = encode.vectors(frames, np.arange(50))
    assert vectors.shape == (7, 1024)
    np.testing.assert_array_equal(vectors, encode.vectors(frames, np.arange(50)))
    # a frame changes vectors near it, and none beyond the window that it is in
    changed = frames.copy()
    changed[49] = 0
    other = encode.vectors(changed, np.arange(50))
    assert (vectors[6] != other[6]).any()
    np.testing.assert_array_equal(vectors[:4], other[:4])


def add_clips(path, names, rng) -> None:
    """Give the videos of a shard of frames two seconds of clips."""
    with h5py.File(path, "a") as file:
        for name in names:
            file[name]["clip"] = rng.integers(0, 256, (50, 40, 56, 3), np.uint8)
            file[name]["clip"].attrs["rate"] = 25.0
            file[name]["clip_row"] = np.arange(50)
            file[name]["time"] = np.arange(len(file[name]["rgb"])) + 0.5


def test_a_shard_has_the_stream_beside_the_others(write_images, settings, tmp_path, rng):
    frames, flow = write_images({"a": 3, "b": 1})
    add_clips(frames, "ab", rng)
    chosen = settings()
    assert TwoStream(chosen, 4).features["clip"] == 1024
    extract(frames, flow, tmp_path / "with.h5", chosen)
    extract(frames, flow, tmp_path / "without.h5", settings(clip_encoder="none"))
    with h5py.File(tmp_path / "with.h5") as file, h5py.File(tmp_path / "without.h5") as plain:
        assert file["a/clip"].shape == (3, 1024)
        assert file["b/clip"].dtype == np.float32
        assert "clip" not in plain["a"]
        for stream in ("rgb", "flow"):
            np.testing.assert_array_equal(file["a"][stream], plain["a"][stream])
        assert file.attrs["digest"] != plain.attrs["digest"]
        assert "i3d with weights i3d.pt on clips of 32 pixels" in file.attrs["description"]
        assert "clips" not in plain.attrs["description"]


def test_scores_are_one_value_a_class(settings, weights, rng):
    chosen = {"rgb_weights": weights, "flow_weights": weights}  # not loaded here
    encode = ClipEncoder(settings(source="scores", flow_encoder="efficientnet_lite0", **chosen))
    assert encode.features == 5
    assert encode.vectors(rng.integers(0, 256, (9, 32, 32, 3), np.uint8), np.arange(9)).shape == (
        2,
        5,
    )


def test_frames_without_clips_say_what_to_run(write_images, settings, tmp_path):
    frames, _ = write_images({"a": 3})
    with (
        h5py.File(frames) as file,
        pytest.raises(InputError, match=r"s_frames\.h5: no frames for clips; run video frames"),
    ):
        read_clips(file["a"])


def test_the_stream_has_components_and_a_scale_of_its_own(write_shard, write_tables, tmp_path, rng):
    widths = {"rgb": 6, "flow": 5, "clip": 8}
    videos = {
        name: {
            stream: 100 * (stream == "clip") + rng.random((20, width))
            for stream, width in widths.items()
        }
        for name in ("a", "b")
    }
    shard = write_shard("s", videos)
    tables = write_tables({"a": "training", "b": "validation"})
    collect([shard], *tables, tmp_path / "f.h5", RescaleSettings(steps=10, components=3))
    assert open_features(tmp_path / "f.h5").array.shape == (2, 10, 9)
    transform = read_transform(tmp_path / "f.h5")
    assert list(transform.streams) == ["rgb", "flow", "clip"]
    assert transform.streams["clip"].components.shape == (3, 8)
    assert transform.streams["clip"].mean == pytest.approx(100.5, abs=0.3)
    assert read_description(tmp_path / "f.h5")
    rows = open_features(tmp_path / "f.h5").array[0, :, 6:]
    assert np.abs(rows.mean(axis=0)).max() < 1e-3
    assert np.mean(np.square(rows)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip_window": 60}, "clip_window 60: must be a multiple of 8"),
        ({"clip_window": 64, "clip_stride": 72}, r"clip_stride 72: must be clip_window or"),
        ({"clip_window": 64, "clip_stride": 56}, "clip_stride 56: .*of 16 less"),
        ({"clip_size": 16}, "clip_size 16: from 32 to 4096"),
    ],
)
def test_settings_out_of_range_name_themselves(options, message):
    with pytest.raises(ValueError, match=message):
        EncoderSettings(**options)
