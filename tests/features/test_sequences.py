"""sequences.h5: windows of videos at every snippet, what is inside them, and cues of change."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import VIDEO_COLUMNS, read_videos, write_videos
from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.features.collect import collect
from actionspan.features.settings import CausalSettings, RescaleSettings, SequenceSettings
from actionspan.features.steps import cut_windows, merge_windows, window_starts
from actionspan.features.store import UNSHARED, open_features, read_transform
from actionspan.features.transform import Transform, transform_features
from actionspan.video.sound import at_snippets, sound_curves
from video.numbered import encode
from worlds.sounds import write_tone

SUBSETS = {"a": "validation", "b": "testing", "c": "training", "d": "training"}
LENGTHS = {"a": 17, "b": 90, "c": 40, "d": 1}  # snippets
WINDOW, STRIDE = 32, 16
SETTINGS = SequenceSettings(window=WINDOW, window_stride=STRIDE, components=3)
WIDTH = 1 + 3 + 3 + 2 * 4 + 2  # inside, both streams, their cues, motion


@pytest.fixture
def raw(rng):
    made = {}
    for name, rows in LENGTHS.items():
        rgb, flow = rng.normal(5, 3, size=(rows, 6)), rng.normal(-1, 2, size=(rows, 4))
        made[name] = {"rgb": rgb.astype(np.float32), "flow": flow.astype(np.float32)}
    return made


@pytest.fixture
def tables(write_tables):
    return write_tables(SUBSETS)


@pytest.fixture
def files(raw, write_shard, tables):
    shards = [write_shard(those, {one: raw[one] for one in those}) for those in ("ca", "bd")]
    return shards, *tables


@pytest.fixture
def make(tmp_path):
    def make(shards, videos, annotations, name="sequences", **how):
        out = tmp_path / f"{name}.h5"
        collect(shards, videos, annotations, out, SETTINGS.rescaling(), with_cues=True, **how)
        return out

    return make


@pytest.fixture
def path(files, make):
    return make(*files, same_footage=0.9)


def test_rows_are_windows_of_the_videos_snippets(path):
    """The first column says what is inside, and the rest is 0 beyond."""
    features = open_features(path)
    assert features.inside
    assert features.array.shape == (1 + 5 + 2 + 1, WINDOW, WIDTH)
    for rows, (name, length) in zip(features.videos(), LENGTHS.items(), strict=True):
        assert set(features.video_id[rows]) == {name}
        assert set(features.subset[rows]) == {SUBSETS[name]}
        starts = window_starts(length, WINDOW, STRIDE, rest=0)
        np.testing.assert_array_equal(features.first_step[rows], starts)
        np.testing.assert_array_equal(features.length[rows], length)
    for row, values in enumerate(features.array):
        inside = min(WINDOW, features.length[row] - features.first_step[row])
        np.testing.assert_array_equal(values[:, 0], np.arange(WINDOW) < inside)
        np.testing.assert_array_equal(values[inside:], 0)
        assert np.isfinite(values).all()


def test_a_video_alone_has_the_same_bits(path, raw):
    features, transform = open_features(path), read_transform(path)
    assert transform.cues
    assert Transform.from_arrays(transform.to_arrays()).cues
    for rows, (name, length) in zip(features.videos(), LENGTHS.items(), strict=True):
        ends = {"frame_difference": (0, 1), "flow_magnitude": (2, 4)}
        motion = {key: np.linspace(*ends[key], length, dtype=np.float32) for key in ends}
        times = (np.arange(length) + 0.5) * 10.0 / length
        alone = transform_features(raw[name], times, 10.0, transform, motion)
        assert alone.shape == (length, WIDTH)
        expected = cut_windows(alone, transform.starts(length), WINDOW)
        np.testing.assert_array_equal(features.array[rows], expected)


def test_shards_without_motion_have_the_cues_of_their_streams(raw, write_shard, tables, make):
    out = make([write_shard("x", raw, motion=False)], *tables, same_footage=0.9)
    assert open_features(out).array.shape[2] == WIDTH - 2


def test_the_cuts_of_a_video_are_with_its_rows(raw, write_shard, tables, tmp_path, make):
    """Those of windows too, and none where a shard has none."""
    cuts = {"b": np.array([[1.5, 0.2], [6.0, 0.9]]), "d": np.array([[2.5, 0.5]])}
    features = open_features(make([write_shard("x", raw, cuts=cuts)], *tables))
    found = {features.video_id[rows.start]: features.marks(rows).cuts for rows in features.videos()}
    for name in SUBSETS:
        np.testing.assert_array_equal(found[name], cuts.get(name, np.zeros((0, 2))))


def test_features_h5_has_no_cuts_no_cues_and_nothing_outside(files, tmp_path):
    collect(*files, tmp_path / "features.h5", RescaleSettings(components=3))
    features = open_features(tmp_path / "features.h5")
    assert [features.marks(rows) for rows in features.videos()] == [None] * 4
    assert features.array.shape == (4, 100, 6)
    assert not features.inside
    assert not read_transform(tmp_path / "features.h5").cues


def test_without_streams_the_curves_of_motion_are_the_features(
    raw, write_shard, tables, tmp_path, make
):
    bare = {name: {"other": rows["rgb"]} for name, rows in raw.items()}
    files = [write_shard("x", bare)], *tables
    path = make(*files, same_footage=0.9)
    features, transform = open_features(path), read_transform(path)
    assert transform.channels == features.array.shape[2] == 3
    assert not transform.streams
    for rows in features.videos():
        sequence = features.sequence(rows)
        assert (sequence[:, 0] == 1).all()
        if len(sequence) > 1:  # the curves rise
            assert (np.diff(sequence[:, 1:], axis=0) > 0).all()
            np.testing.assert_allclose(sequence[:, 1:].std(axis=0), 2, rtol=1e-5)
    # as the papers' models and a stream see them
    collect(*files, tmp_path / "features.h5", RescaleSettings())
    assert read_transform(tmp_path / "features.h5").channels == 2
    assert open_features(tmp_path / "features.h5").array.shape == (4, 100, 2)
    causal = make(*files, name="causal", causal=CausalSettings())
    assert read_transform(causal).channels == open_features(causal).array.shape[2] == 1 + 2 * 2
    with pytest.raises(InputError, match=r"no features \(rgb and flow, external, or motion\)"):
        make([write_shard("y", bare, motion=False)], *tables)


def run(step, files, out, *more):
    shards, videos, annotations = files
    words = ["features", step, "--shards", *shards, "--videos", videos, "--components", 3]
    words += ["--annotations", annotations, "--out", out, *more]
    assert main([str(word) for word in words]) == 0
    return out


def test_the_command_writes_the_same_bytes(files, path, tmp_path):
    how = (f"--window={WINDOW}", f"--window-stride={STRIDE}")
    again = run("sequences", files, tmp_path / "by_command.h5", *how)
    with h5py.File(path) as one, h5py.File(again) as two:
        np.testing.assert_array_equal(one["features"], two["features"])
        assert dict(one.attrs) == dict(two.attrs)
    causal = run("causal", files, tmp_path / "causal.h5", "--horizon=30", "--ahead=3")
    assert read_transform(causal).past.ahead == 3


def test_windows_must_meet():
    with pytest.raises(ValueError, match="window_stride 33: at most window, 32"):
        SequenceSettings(window=32, window_stride=33)


def test_what_training_videos_share_is_written(raw, write_shard, tables, capsys, monkeypatch, make):
    """The single snippet of d is the sixth of c; a, which has it too, is for validation."""
    for name in "da":
        raw[name]["rgb"][0] = raw["c"]["rgb"][5]
    found, shards = [], [write_shard("x", raw)]
    for similarity, fewest in ((0.999, 3), (1.0, 3), (0.999, 4)):
        monkeypatch.setattr("actionspan.features.collect.FEWEST_FEATURES", fewest)
        features = open_features(make(shards, *tables, same_footage=similarity))
        shown = {}
        for rows in features.videos():
            name, starts = features.video_id[rows.start], features.first_step[rows]
            shown[name] = merge_windows(features.footage[rows], starts, LENGTHS[name])
        assert set(shown["a"]) == set(shown["b"]) == {UNSHARED}
        found.append((shown["c"][5] != UNSHARED, shown["c"][5] == shown["d"][0]))
    assert found == [(True, True), (False, True), (False, True)]
    line = "sequences.h5: 3 features of the first stream are too few (from 4); footage that videos"
    assert line in capsys.readouterr().err
    monkeypatch.setattr("actionspan.features.collect.MOST_STEPS", 40)
    monkeypatch.setattr("actionspan.features.collect.FEWEST_FEATURES", 3)
    out = make(shards, *tables, same_footage=0.5)
    line = "sequences.h5: 41 training steps are too many to compare (up to 40)"
    assert line in capsys.readouterr().err
    assert (open_features(out).footage == UNSHARED).all()


def test_causal_rows_are_those_of_each_video_alone(files, make):
    out = make(*files, causal=CausalSettings(horizon=20, ahead=2))
    features, transform = open_features(out), read_transform(out)
    assert features.inside
    assert features.causal
    assert features.array.shape[2] == 1 + 2 * (WIDTH - 1)
    assert (transform.past.horizon, transform.past.ahead) == (20, 2)
    found = {features.video_id[rows.start]: features.sequence(rows) for rows in features.videos()}
    assert {name: len(rows) for name, rows in found.items()} == LENGTHS
    # the cues have mean 0 and deviation 2 over the training videos
    cues = np.concatenate([found[name] for name in "cd"])[:, 7 : 7 + 2 * 4 + 2]
    np.testing.assert_allclose(cues.mean(axis=0), 0, atol=1e-4)
    assert (np.abs(cues.std(axis=0) - 2) < 1e-3).sum() >= 8  # motion may be constant


def test_sound_is_a_stream_of_the_video_files(files, tables, make, tmp_path):
    plain, videos = make(*files, name="plain"), read_videos(tables[0])
    for video, amplitude in zip(videos, (0.5, 0.05, 0.25, None), strict=True):
        path = tmp_path / video.path.name
        if amplitude is None:
            encode(path, 20)  # it has no sound
        else:
            write_tone(path, (amplitude, amplitude / 10), seconds=10.0, fps=5)
    listed = [replace(video, path=tmp_path / video.path.name) for video in videos]
    write_videos(tables[0], listed, VIDEO_COLUMNS)
    path = make(*files, name="heard", sound=True)
    heard, transform = open_features(path), read_transform(path)
    assert list(transform.streams) == ["rgb", "flow", "sound"]
    assert heard.array.shape[2] == open_features(plain).array.shape[2] + 2 + 4
    for rows, video in zip(heard.videos(), listed, strict=True):
        times = (np.arange(LENGTHS[video.video_id]) + 0.5) * 10.0 / LENGTHS[video.video_id]
        levels = at_snippets(sound_curves(video.path, 10.0), times)
        applied = transform.streams["sound"].apply(levels)
        expected = cut_windows(applied, transform.starts(len(times)), WINDOW)
        np.testing.assert_allclose(heard.array[rows][..., 7:9], expected, atol=1e-5)
    with h5py.File(path) as one, h5py.File(plain) as two:
        assert one.attrs["digest"] != two.attrs["digest"]
    listed[0].path.unlink()
    with pytest.raises(InputError, match="no such file, and its sound is wanted; set sound"):
        make(*files, name="missing", sound=True)
