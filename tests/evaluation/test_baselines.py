"""The baselines: what they propose, in which order, and what that depends on."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.annotations.tables import VIDEO_COLUMNS, Video, write_annotations, write_videos
from actionspan.evaluation.baseline import (
    actionness,
    cut_proposals,
    frame_differences,
    random_proposals,
    relative_lengths,
    sliding_windows,
)
from actionspan.evaluation.settings import BaselineSettings
from actionspan.features.collect import collect
from actionspan.features.settings import SequenceSettings
from actionspan.proposals.grouping import group_proposals
from actionspan.proposals.segments import read_proposals
from actionspan.proposals.settings import SuppressionSettings
from actionspan.storage.writing import create_h5
from actionspan.temporal.probabilities import Prediction, write_probabilities
from worlds.command import actionspan
from worlds.features import write_features
from worlds.scored import annotated

DEFAULT = BaselineSettings()


@settings(max_examples=25)
@given(
    duration=st.floats(0.1, 1e4),
    proposals=st.integers(1, 120),
    overlap=st.floats(0, 0.9),
    shortest=st.floats(0.005, 1),
    seed=st.integers(0, 9),
)
def test_all_make_ordered_segments_inside_the_video(duration, proposals, overlap, shortest, seed):
    chosen = BaselineSettings(
        proposals=proposals, seed=seed, overlap=overlap, shortest_window=shortest
    )
    motion = np.random.default_rng(seed).uniform(size=100)
    keep = SuppressionSettings(keep=proposals)
    for segments, scores in (
        random_proposals("video", duration, chosen),
        sliding_windows(duration, np.array([0.1, 0.1, 0.5]), chosen),
        group_proposals(motion, duration, None, keep),
        group_proposals(motion, duration, None, keep, stretch=False),
    ):
        assert segments.shape == (len(scores), 2)
        assert len(scores) <= proposals
        assert (segments[:, 0] >= 0).all()
        assert (segments[:, 1] <= duration * (1 + 1e-12)).all()
        assert (segments[:, 0] < segments[:, 1]).all()
        assert (np.diff(scores) <= 0).all()
        assert (scores >= 0).all()


def test_random_depends_on_seed_and_id_alone():
    segments, scores = random_proposals("a", 10, DEFAULT)
    assert len(scores) == 100
    for name, seed, same in (("a", 1, True), ("b", 1, False), ("a", 2, False)):
        other, _ = random_proposals(name, 10, BaselineSettings(seed=seed))
        assert np.array_equal(segments, other) == same


def test_random_is_uniform_before_it_is_cut():
    many = BaselineSettings(proposals=40_000)
    segments, _ = random_proposals("a", 10, many)
    inside = (segments[:, 0] > 0) & (segments[:, 1] < 10)
    # centre U(0, 1), length U(0, 1): it lies inside where length/2 < centre < 1 - length/2.
    assert inside.mean() == pytest.approx(0.5, abs=0.01)


def test_windows_take_the_training_lengths_first():
    typical = np.full(40, 0.25)
    segments, _ = sliding_windows(80, typical, DEFAULT)
    first = segments[:9]
    np.testing.assert_allclose(first[:, 1] - first[:, 0], 20)
    assert first[:, 0].min() == 0
    assert first[:, 1].max() == 80


def test_windows_without_training_go_from_the_longest_to_the_shortest():
    segments, scores = sliding_windows(64, np.empty(0), DEFAULT)
    lengths = segments[:, 1] - segments[:, 0]
    assert lengths[0] == 64
    assert (np.diff(lengths) <= 1e-9).all()
    assert scores[0] == 1


def test_windows_overlap_at_least_as_asked_and_cover_the_video():
    settings_ = BaselineSettings(overlap=0.5, proposals=1000)
    segments, _ = sliding_windows(1, np.empty(0), settings_)
    length = segments[:, 1] - segments[:, 0]
    for scale in np.unique(length.round(9)):
        mine = np.sort(segments[length.round(9) == scale, 0])
        assert mine[0] == 0
        assert mine[-1] + scale == pytest.approx(1)
        assert (np.diff(mine) <= 0.5 * scale + 1e-9).all()


def test_the_first_windows_of_a_length_are_spread_over_the_video():
    many = np.full(1000, 0.02)
    segments, _ = sliding_windows(100, many, BaselineSettings(proposals=16, shortest_window=0.02))
    gaps = np.diff(np.sort(segments[:, 0]))
    assert gaps.max() < 14
    assert segments[:, 0].max() > 80


def test_long_lists_hold_what_there_is():
    many = BaselineSettings(proposals=1500)
    segments, scores = random_proposals("a", 200, many)
    assert len(np.unique(segments, axis=0)) == len(scores) == 1500
    # at 0.6 overlap there are no more windows than these; a larger overlap makes more
    segments, scores = sliding_windows(200, np.empty(0), many)
    windows = sum(int(np.ceil((2 ** (i / 2) - 1) / 0.4 - 1e-9)) + 1 for i in range(12))
    assert len(np.unique(segments.round(9), axis=0)) == len(scores) == windows < 1500
    assert (scores > 0).all()
    dense = BaselineSettings(proposals=1500, overlap=0.95)
    segments, scores = sliding_windows(200, np.empty(0), dense)
    assert len(np.unique(segments.round(9), axis=0)) == len(scores) == 1500


def test_lengths_come_from_the_training_subset_alone():
    known = [annotated("a", (1, 6), subset="training", duration=10), annotated("b", (1, 6))]
    assert relative_lengths(known).tolist() == [0.5]


def test_runs_of_shots_are_ordered_by_length_and_by_their_cuts():
    # shots of 2, 2, 3 and 1 seconds; training instances are of about 2 and of 4
    cuts = np.array([[2.0, 0.9], [4.0, 0.1], [7.0, 0.6]])
    segments, worth = cut_proposals(cuts, 8.0, [1.9, 2.0, 2.1, 4.0], 100)
    assert len(segments) == 4 + 3 + 2 + 1
    assert (np.diff(worth) <= 0).all()
    # of the two shots of 2 seconds the first has the stronger of the weaker ends
    assert segments[0].tolist() == [0, 2]
    assert worth[0] / worth[segments.tolist().index([2, 4])] == pytest.approx(np.exp(0.9 - 0.1))
    # whatever holds the strong cut at 2 is worth exp(-4 · 0.9) of its density
    joined = segments.tolist().index([0, 4]), segments.tolist().index([4, 8])
    assert worth[joined[0]] / worth[joined[1]] == pytest.approx(np.exp(0.1 - 3.6 - (0.1 - 2.4)))
    few, best = cut_proposals(cuts, 8.0, [1.9, 2.0, 2.1, 4.0], 3)
    np.testing.assert_array_equal(few, segments[:3])
    np.testing.assert_array_equal(best, worth[:3])


@pytest.mark.parametrize("lengths", [[], [2.0], [2.0, 2.0]])
def test_lengths_that_do_not_differ_prefer_none(lengths):
    segments, worth = cut_proposals(np.zeros((0, 2)), 5.0, lengths, 10)
    assert segments.tolist() == [[0, 5]]
    assert worth == [pytest.approx(np.e)]


def baseline(folder: Path, *more) -> int:
    files = ("--annotations", folder / "annotations.json", "--out-json", folder / "out.json")
    words = ("--method", "cuts", *files, "--out-csv", folder / "out.csv")
    return actionspan("evaluation", "baseline", *words, *more)


def test_the_command_reads_the_cuts_of_the_videos_that_are_scored(tmp_path, capsys, rng):
    """One without features is named, and gets no proposals."""
    with create_h5(tmp_path / "shard.h5", "") as file:
        for name in "ab":
            rows = rng.normal(size=(40, 6)).astype(np.float32)
            cuts = np.array([[2.5, 0.9], [5.0, 0.8]])[: 0 if name == "a" else 2]
            for key, values in {"rgb": rows, "time": np.arange(40) / 4, "cuts": cuts}.items():
                file[f"{name}/{key}"] = values
    subsets = {"a": "training", "b": "validation", "c": "validation"}
    known = [
        annotated(name, (0, 2.5), (1, 4.5), subset=subset, duration=10)
        for name, subset in subsets.items()
    ]
    write_annotations(tmp_path / "annotations.json", known)
    facts = {"fps": 25, "frames": 250, "duration_seconds": 10, "width": 96, "height": 72}
    videos = [
        Video(video_id=name, path=Path(f"{name}.mp4"), sha256="", subset=subsets[name], **facts)
        for name in "ab"
    ]
    write_videos(tmp_path / "videos.tsv", videos, VIDEO_COLUMNS)
    sequences, settings = tmp_path / "sequences.h5", SequenceSettings(components=2)
    tables = tmp_path / "videos.tsv", tmp_path / "annotations.json"
    collect([tmp_path / "shard.h5"], *tables, sequences, settings.rescaling(), with_cues=True)
    assert baseline(tmp_path, "--features", sequences) == 0
    assert "sequences.h5: without features: c" in capsys.readouterr().err
    made = read_proposals(tmp_path / "out.json")
    assert made["c"] == []
    assert len(made["b"]) == 3 + 2 + 1
    assert made["b"][0]["segment"] == pytest.approx((0, 2.5))


def test_the_command_needs_the_sequences(tmp_path, capsys):
    """Features that do not say where videos are cut would make each video one shot."""
    write_annotations(tmp_path / "annotations.json", [annotated("a", duration=8)])
    facts = "a", [8.0], ["validation"]
    write_features(tmp_path / "features.h5", np.zeros((1, 4, 2), np.float32), *facts)
    assert baseline(tmp_path, "--features", tmp_path / "features.h5") != 0
    assert "features.h5: no cuts; give sequences.h5" in capsys.readouterr().err
    assert baseline(tmp_path) != 0
    assert "--method cuts needs --features sequences.h5" in capsys.readouterr().err


@pytest.fixture
def windowed(tmp_path):
    """`a` has 6 steps in two windows of 4, `b` has 3 steps and a window that reaches beyond."""
    path = tmp_path / "features.h5"
    motion = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 8, 7, 0]], np.float32)
    windows = {"frame_difference": motion, "first_step": [0, 2, 0], "length": [6, 6, 3]}
    facts = "aab", [9.0] * 3, ["validation"] * 3
    write_features(path, np.zeros((3, 4, 2), np.float32), *facts, **windows)
    return path


def test_frame_differences_of_windows_are_merged(windowed):
    b, a = frame_differences(windowed, [annotated("b"), annotated("a")])
    assert a.tolist() == [1, 2, 4, 5, 7, 8]  # the mean of 3 and 5, of 4 and 6
    assert b.tolist() == [9, 8, 7]


def test_actionness_of_videos_of_any_length(tmp_path, capsys):
    path = tmp_path / "probabilities.h5"
    values = [np.full((2, 3), [0.1, 0.2, 0.3], np.float32), np.full((1, 3), 0.5, np.float32)]
    made = map(Prediction, values)
    write_probabilities(path, "x", ["a", "b"], [9.0, 9.0], ["validation"] * 2, [2, 1], made)
    b, missing, a = actionness(path, [annotated("b"), annotated("c"), annotated("a")])
    np.testing.assert_allclose(a, [0.2, 0.2], rtol=1e-6)
    assert b.tolist() == [0.5]
    assert not missing.any()
    assert "probabilities.h5: without features: c" in capsys.readouterr().err
