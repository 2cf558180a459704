"""Folds of the training videos: what is held out, and the data set of a fold."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import (
    VIDEO_COLUMNS,
    read_annotations,
    read_videos,
    write_annotations,
    write_videos,
)
from actionspan.dataset.folds import fold_parts, hold_out
from worlds.command import actionspan
from worlds.scored import annotated
from worlds.videos import video_of

SUBSETS = ("training", "training", "validation", "training", "testing", "training", "training")
KNOWN = [
    annotated(f"v{number}", (1 / 3, 4.0 + number), subset=subset, duration=10.0 + number / 7)
    for number, subset in enumerate(SUBSETS)
]


@given(names=st.sets(st.text(min_size=1, max_size=5), min_size=2, max_size=20), data=st.data())
def test_each_video_is_in_one_part_whatever_their_order(names, data):
    folds = data.draw(st.integers(2, len(names)))
    parts = fold_parts(names, folds)
    assert sorted(name for part in parts for name in part) == sorted(names)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert fold_parts(sorted(names, reverse=True), folds) == parts


def test_a_fold_has_the_training_videos_alone():
    training = [one for one in KNOWN if one.subset == "training"]
    out = []
    for fold in (1, 2, 3):
        made = hold_out(KNOWN, 3, fold)
        assert [one.video_id for one in made] == [one.video_id for one in training]
        assert [one.instances for one in made] == [one.instances for one in training]
        assert {one.subset for one in made} == {"training", "testing"}
        out += [one.video_id for one in made if one.subset == "testing"]
    assert sorted(out) == [one.video_id for one in training]


@pytest.mark.parametrize(
    ("folds", "fold", "line"),
    [
        (1, 1, "1 folds of 5 training videos: from 2 to their number"),
        (6, 1, "6 folds of 5 training videos: from 2 to their number"),
        (2, 3, "fold 3: from 1 to 2"),
        (2, 0, "fold 0: from 1 to 2"),
    ],
)
def test_too_few_or_many(folds, fold, line):
    with pytest.raises(ValueError, match=line):
        hold_out(KNOWN, folds, fold)


@pytest.fixture
def step(tmp_path):
    """The command, on a data set of three subsets."""
    videos = [video_of(one.video_id, one.duration_seconds, subset=one.subset) for one in KNOWN]
    annotations, table = tmp_path / "annotations.json", tmp_path / "videos.tsv"
    write_annotations(annotations, KNOWN, "the tests")
    write_videos(table, videos, VIDEO_COLUMNS)

    def run(folds, fold):
        words = ("--folds", folds, "--fold", fold, "--out", tmp_path / "folds" / str(fold))
        data = ("--annotations", annotations, "--videos", table)
        return actionspan("dataset", "folds", *data, *words)

    return run


def test_the_step_writes_the_tables_of_a_fold(step, tmp_path):
    assert step(2, 1) == 0
    folder = tmp_path / "folds/1"
    assert read_annotations(folder / "annotations.json") == hold_out(KNOWN, 2, 1)
    every = {one.video_id: one for one in read_videos(tmp_path / "videos.tsv")}
    subsets = {one.video_id: one.subset for one in hold_out(KNOWN, 2, 1)}
    wanted = [replace(every[name], subset=subset) for name, subset in subsets.items()]
    assert read_videos(folder / "videos.tsv") == wanted
    name = json.loads((folder / "annotations.json").read_text())["name"]
    assert name == "the tests, fold 1 of 2"


def test_too_many_folds_are_one_line(step, tmp_path, capsys):
    assert step(6, 1) == 2
    line = f"{tmp_path}/annotations.json: 6 folds of 5 training videos: from 2 to their number"
    assert line in capsys.readouterr().err
    assert not (tmp_path / "folds").exists()
