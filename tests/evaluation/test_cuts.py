"""The rule that knows cuts and lengths: what it proposes."""

from pathlib import Path

import numpy as np
import pytest

from actionspan.cli import main
from actionspan.dataset.tables import (
    VIDEO_COLUMNS,
    Annotation,
    Instance,
    Video,
    write_annotations,
    write_videos,
)
from actionspan.evaluation.cuts import cut_proposals
from actionspan.features.collect import collect
from actionspan.features.settings import SequenceSettings
from actionspan.proposals.segments import read_proposals
from actionspan.storage.writing import create_h5


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
    return main(
        [
            *("evaluation", "baseline", "--method", "cuts"),
            *("--annotations", str(folder / "annotations.json"), *map(str, more)),
            *("--out-json", str(folder / "out.json"), "--out-csv", str(folder / "out.csv")),
        ]
    )


def test_the_command_reads_the_cuts_of_the_videos_that_are_scored(tmp_path, capsys, rng):
    """One without features is named, and gets no proposals."""
    with create_h5(tmp_path / "shard.h5", "") as file:
        for name in "ab":
            rows = rng.normal(size=(40, 6)).astype(np.float32)
            cuts = np.array([[2.5, 0.9], [5.0, 0.8]])[: 0 if name == "a" else 2]
            for key, values in {"rgb": rows, "time": np.arange(40) / 4, "cuts": cuts}.items():
                file[f"{name}/{key}"] = values
    instances = (Instance(start=0, end=2.5, label="x"), Instance(start=1, end=4.5, label="x"))
    subsets = {"a": "training", "b": "validation", "c": "validation"}
    annotations = [
        Annotation(video_id=name, subset=subset, duration_seconds=10, instances=instances)
        for name, subset in subsets.items()
    ]
    write_annotations(tmp_path / "annotations.json", annotations)
    videos = [
        Video(
            video_id=name,
            path=Path(f"{name}.mp4"),
            fps=25,
            frames=250,
            duration_seconds=10,
            width=96,
            height=72,
            sha256="",
            subset=subsets[name],
        )
        for name in "ab"
    ]
    write_videos(tmp_path / "videos.tsv", videos, VIDEO_COLUMNS)
    sequences, settings = tmp_path / "sequences.h5", SequenceSettings(components=2)
    collect(
        [tmp_path / "shard.h5"],
        tmp_path / "videos.tsv",
        tmp_path / "annotations.json",
        sequences,
        settings.rescaling(),
        with_cues=True,
    )
    assert baseline(tmp_path, "--features", sequences) == 0
    assert "sequences.h5: without features: c" in capsys.readouterr().err
    made = read_proposals(tmp_path / "out.json")
    assert made["c"] == []
    assert len(made["b"]) == 3 + 2 + 1
    assert made["b"][0]["segment"] == pytest.approx((0, 2.5))


def test_the_command_needs_the_sequences(tmp_path, capsys):
    """Features that do not say where videos are cut would make each video one shot."""
    known = [Annotation(video_id="a", subset="validation", duration_seconds=8)]
    write_annotations(tmp_path / "annotations.json", known)
    with create_h5(tmp_path / "features.h5", "") as file:
        file["features"] = np.zeros((1, 4, 2), np.float32)
        file["video_id"], file["subset"], file["duration_seconds"] = ["a"], ["validation"], [8.0]
    assert baseline(tmp_path, "--features", tmp_path / "features.h5") != 0
    assert "features.h5: no cuts; give sequences.h5" in capsys.readouterr().err
    assert baseline(tmp_path) != 0
    assert "--method cuts needs --features sequences.h5" in capsys.readouterr().err
