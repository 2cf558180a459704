"""The clip stream: its windows, its vectors' times, and its place beside the other streams."""

import h5py
import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.features.clips import ClipEncoder, Clips, Windows, read_clips
from actionspan.features.collect import collect
from actionspan.features.extraction import TwoStream, extract
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.features.store import open_features, read_description, read_transform
from features.conftest import SMALL


@pytest.fixture
def settings(weights):
    chosen = {**SMALL, "flow_encoder": "flow_histogram", "clip_weights": weights["i3d"]}
    chosen |= {"clip_encoder": "i3d", "clip_size": 32, "clip_window": 32, "clip_stride": 16}
    return lambda **options: EncoderSettings(**(chosen | options))


@pytest.fixture
def means(settings):
    """Encode by the mean of every 8 frames in place of a network."""

    def make(**options):
        encode = ClipEncoder(settings(runtime="eager", **options))
        encode.run.network = lambda clips: (
            clips.mean(dim=(1, 3, 4)).reshape(1, -1, 8).mean(2)[..., None]
        )
        return encode

    return make


def flat_frames(levels) -> np.ndarray:
    one_each = np.asarray(levels, np.uint8)[:, None, None, None]
    return np.broadcast_to(one_each, (len(levels), 8, 8, 3))


@pytest.mark.parametrize(("window", "stride"), [(8, 8), (32, 16), (64, 64), (128, 112)])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 65, 120, 300])
def test_windows_cover_a_video_once(count, window, stride):
    margin = (window - stride) // 2
    starts = range(0, count, stride)
    windows = [Windows(window, stride, each=8).at(start, count) for start in starts]
    assert all(len(one) % 8 == 0 and len(one) <= window for one in windows)
    kept = np.concatenate([one[margin : len(one) - margin] for one in windows])
    assert kept[:count].tolist() == list(range(count))
    assert len(kept) == -(-count // 8) * 8
    assert (kept[count:] == count - 1).all()  # what fills up the last vector
    for one, start in zip(windows, starts, strict=True):
        around = np.arange(start - margin, start - margin + len(one))
        assert one.tolist() == np.clip(around, 0, count - 1).tolist()


@pytest.mark.parametrize(("window", "stride"), [(8, 8), (32, 16), (32, 32), (64, 48)])
def test_each_vector_is_of_its_own_eight_frames(means, rng, window, stride):
    rows = np.sort(rng.integers(0, 40, 100))  # some frames are several samples, some none
    levels = rng.integers(0, 256, 40)
    vectors = means(clip_window=window, clip_stride=stride).vectors(flat_frames(levels), rows)
    samples = np.append(levels[rows], [levels[rows[-1]]] * 4) / 127.5 - 1
    np.testing.assert_allclose(vectors[:, 0], samples.reshape(-1, 8).mean(axis=1), atol=1e-5)


def test_snippets_get_the_vector_of_their_time(means):
    """Levels that rise evenly are those at the snippets' own times, but for the ends."""
    levels, times = np.arange(200), np.array([0.0, 1.0, 2.345, 7.0])
    found = means()(Clips(flat_frames(levels), np.arange(200), 25.0, times))[:, 0]
    expected = np.clip(times * 25, 3.5, 195.5) / 127.5 - 1
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_network_gives_a_vector_for_8_frames_and_repeats_to_the_bit(settings, rng):
    frames, rows = rng.integers(0, 256, (50, 40, 56, 3), np.uint8), np.arange(50)
    encode = ClipEncoder(settings())
    vectors = encode.vectors(frames, rows)
    assert vectors.shape == (7, 1024)
    np.testing.assert_array_equal(vectors, encode.vectors(frames, rows))
    # a frame changes vectors near it, and none beyond the window that it is in
    frames[49] = 0
    other = encode.vectors(frames, rows)
    assert (vectors[6] != other[6]).any()
    np.testing.assert_array_equal(vectors[:4], other[:4])


def test_a_shard_has_the_stream_beside_the_others(write_images, settings, tmp_path, rng, here):
    frames, flow = write_images({"a": 3, "b": 1})
    with h5py.File(frames, "a") as file:  # two seconds of clips each
        for group in file.values():
            group["clip"] = rng.integers(0, 256, (50, 40, 56, 3), np.uint8)
            group["clip"].attrs["rate"] = 25.0
            group["clip_row"] = np.arange(50)
            group["time"] = np.arange(len(group["rgb"])) + 0.5
    assert TwoStream(settings(), 4).features["clip"] == 1024
    for name, options in (("with", {}), ("without", {"clip_encoder": "none"})):
        extract(frames, flow, tmp_path / f"{name}.h5", settings(**options))
    with h5py.File(tmp_path / "with.h5") as file, h5py.File(tmp_path / "without.h5") as plain:
        assert file["a/clip"].shape == (3, 1024)
        assert file["b/clip"].dtype == np.float32
        assert "clip" not in plain["a"]
        for stream in ("rgb", "flow"):
            np.testing.assert_array_equal(file["a"][stream], plain["a"][stream])
        assert file.attrs["digest"] != plain.attrs["digest"]
        assert "i3d with weights i3d.pt on clips of 32 pixels" in file.attrs["description"]
        assert "clips" not in plain.attrs["description"]


def test_frames_without_clips_say_what_to_run(write_images):
    frames, _ = write_images({"a": 3})
    message = r"s_frames\.h5: no frames for clips; run video frames"
    with h5py.File(frames) as file, pytest.raises(InputError, match=message):
        read_clips(file["a"])


def test_the_stream_has_components_and_a_scale_of_its_own(write_shard, write_tables, tmp_path, rng):
    widths = {"rgb": 6, "flow": 5, "clip": 8}
    raw = {
        name: {key: 100 * (key == "clip") + rng.random((20, widths[key])) for key in widths}
        for name in "ab"
    }
    tables, out = write_tables({"a": "training", "b": "validation"}), tmp_path / "f.h5"
    collect([write_shard("s", raw)], *tables, out, RescaleSettings(steps=10, components=3))
    array, transform = open_features(out).array, read_transform(out)
    assert array.shape == (2, 10, 9)
    assert list(transform.streams) == ["rgb", "flow", "clip"]
    assert transform.streams["clip"].components.shape == (3, 8)
    assert transform.streams["clip"].mean == pytest.approx(100.5, abs=0.3)
    assert read_description(out)
    rows = array[0, :, 6:]
    assert np.abs(rows.mean(axis=0)).max() < 1e-3
    assert np.mean(np.square(rows)) == pytest.approx(1, abs=1e-3)
