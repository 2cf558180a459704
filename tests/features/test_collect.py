"""features.h5 from shards: standardised on training videos, readable by memory map."""

import h5py
import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.features.collect import collect
from actionspan.features.settings import RescaleSettings
from actionspan.features.store import open_features, read_transform

SUBSETS = {"d": "training", "a": "validation", "c": "training", "b": "testing"}
PLAIN = RescaleSettings(components=0, standardise="none")


@pytest.fixture
def raw(rng):
    return {
        name: {"rgb": rng.normal(5, 3, size=(rows, 6)), "flow": rng.normal(-1, 2, size=(rows, 4))}
        for name, rows in zip(SUBSETS, (1, 17, 40, 150), strict=True)
    }


@pytest.fixture
def tables(write_tables):
    return write_tables(SUBSETS)


@pytest.fixture
def made(raw, write_shard, tables, tmp_path):
    """features.h5 of two shards, in no order."""
    shards = [write_shard(those, {one: raw[one] for one in those}) for those in ("ca", "bd")]

    def make(**options):
        collect(shards, *tables, tmp_path / "features.h5", RescaleSettings(**options))
        return tmp_path / "features.h5"

    return make


def test_videos_are_sorted_and_know_their_subset_and_motion(made, tmp_path):
    features = open_features(made(components=2))
    assert features.video_id == ["a", "b", "c", "d"]
    assert features.subset == ["validation", "testing", "training", "training"]
    assert features.array.shape == (4, 100, 4)
    assert features.array.dtype == np.float32
    np.testing.assert_array_equal(features.rows("training"), [2, 3])
    np.testing.assert_allclose(features.duration_seconds, 10)
    assert features.frame_difference.shape == features.flow_magnitude.shape == (4, 100)
    assert features.flow_magnitude[2, [0, -1]] == pytest.approx([2, 4], abs=1e-4)
    np.testing.assert_allclose(features.flow_magnitude[3], 2)  # one snippet, repeated
    # the array is a memory map of the file
    assert isinstance(features.array, np.memmap)
    with h5py.File(tmp_path / "features.h5") as file:
        np.testing.assert_array_equal(file["features"][:], features.array)


@pytest.mark.parametrize("components", [0, 3])
def test_the_training_subset_alone_has_mean_0_and_variance_1(made, components):
    features = open_features(made(components=components, standardise="dimension"))
    training = features.array[features.rows("training")].reshape(200, -1)
    np.testing.assert_allclose(training.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(training.var(axis=0), 1, atol=1e-4)
    others = features.array[:2].reshape(200, -1)
    assert np.abs(others.var(axis=0) - 1).max() > 0.1


def test_no_training_video_is_one_line(raw, write_shard, write_tables, tmp_path):
    files = [write_shard("x", {"a": raw["a"]})], *write_tables({"a": "validation"})
    with pytest.raises(InputError, match="no video of the subset training"):
        collect(*files, tmp_path / "f.h5", RescaleSettings())
    collect(*files, tmp_path / "f.h5", PLAIN)
    assert open_features(tmp_path / "f.h5").array.shape == (1, 100, 10)


def test_videos_without_features_are_reported_and_left_out(
    raw, write_shard, tables, tmp_path, capsys
):
    shard, out, other = write_shard("x", {"c": raw["c"]}), tmp_path / "f.h5", tmp_path / "other.h5"
    collect([shard], *tables, out, RescaleSettings())
    assert open_features(out).video_id == ["c"]
    message = "without features: 3 of 4 videos: a, b, d"
    assert message in capsys.readouterr().err
    with pytest.raises(InputError, match=message):
        collect([shard], *tables, other, RescaleSettings(), all_needed=True)
    assert not other.exists()


def test_features_that_do_not_fit_together_are_named(raw, write_shard, tables, tmp_path):
    good = write_shard("x", {"c": raw["c"]})
    narrow = {stream: values[:, :3] for stream, values in raw["d"].items()}
    holed = {stream: values.copy() for stream, values in raw["d"].items()}
    holed["flow"][0, 0] = np.nan
    for content, motion, message in (
        ({"d": narrow}, True, "video d: rgb 3, flow 3 features, other videos have rgb 6, flow 4"),
        ({"d": holed}, True, "video d: flow holds values that are not finite"),
        ({"d": raw["d"]}, False, "video d: frame_difference and flow_magnitude unlike"),
        ({"c": raw["c"]}, True, "video c is in .*x.h5 too"),
    ):
        shards = [good, write_shard("y", content, motion)]
        with pytest.raises(InputError, match=message):
            collect(shards, *tables, tmp_path / "f.h5", RescaleSettings())
    assert not (tmp_path / "f.h5").exists()


def test_a_chunked_or_foreign_file_is_refused(made, tmp_path):
    path = made(components=2)
    chunked = tmp_path / "chunked.h5"
    with h5py.File(path) as old, h5py.File(chunked, "w") as new:
        for key in ("video_id", "subset", "duration_seconds"):
            old.copy(key, new)
        new.create_dataset("features", data=old["features"][:], chunks=(1, 100, 4))
    with pytest.raises(InputError, match="not a contiguous float32 dataset"):
        open_features(chunked)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(InputError, match="no dataset features"):
        open_features(tmp_path / "other.h5")
    with pytest.raises(InputError, match="no group transform"):
        read_transform(tmp_path / "other.h5")
