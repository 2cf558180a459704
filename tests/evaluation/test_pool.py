"""`evaluation pool`: each video's proposals come from the fold that holds it out."""

import csv
import json

import pytest

from actionspan.annotations.tables import write_annotations
from worlds.command import actionspan
from worlds.scored import annotated, write_results

# The held-out videos of each fold; the others are its training videos.
OUT = {1: ("b", "d"), 2: ("a", "c")}


def row(start, score):
    return {"score": score, "segment": [start, start + 1.0]}


@pytest.fixture
def pool(tmp_path):
    """The command, on two folds; a score says which fold it is of, and c has no proposals."""
    for fold, out in OUT.items():
        subsets = {name: "testing" if name in out else "training" for name in "abcd"}
        known = [annotated(name, subset=subset) for name, subset in subsets.items()]
        write_annotations(tmp_path / f"{fold}.annotations.json", known)
        rows = [(2.0, 3.0, fold / 4), (fold, fold + 1.0, fold / 8)]
        write_results(tmp_path / f"{fold}.json", dict.fromkeys("abd", rows))

    def run(folds=(1, 2), annotations=(1, 2)):
        files = ["--proposals", *(tmp_path / f"{fold}.json" for fold in folds), "--annotations"]
        files += [tmp_path / f"{fold}.annotations.json" for fold in annotations]
        outs = ["--out-json", tmp_path / "all.json", "--out-csv", tmp_path / "all.csv"]
        return actionspan("evaluation", "pool", *files, *outs)

    return run


def test_each_video_is_from_the_fold_that_never_saw_it(pool, tmp_path):
    assert pool() == 0
    results = json.loads((tmp_path / "all.json").read_text())["results"]
    assert results == {
        "a": [row(2.0, 0.5), row(2, 0.25)],
        "b": [row(2.0, 0.25), row(1, 0.125)],
        "d": [row(2.0, 0.25), row(1, 0.125)],
    }
    with (tmp_path / "all.csv").open() as file:
        table = [(each["video_id"], each["rank"]) for each in csv.DictReader(file)]
    assert table == [(name, rank) for name in "abd" for rank in "12"]


@pytest.mark.parametrize(
    ("folds", "annotations", "line"),
    [
        ((1, 2), (1,), "--proposals and --annotations: 2 and 1 files; one of each for every fold"),
        ((1, 1), (1, 1), "1.annotations.json: video 'b' is held out in"),
    ],
)
def test_folds_that_do_not_fit_are_one_line(pool, tmp_path, refused, folds, annotations, line):
    assert line in refused(pool(folds, annotations))
    for fold in OUT:
        write_results(tmp_path / f"{fold}.json", {})
    assert "no fold has proposals of a held-out video" in refused(pool())
    assert not (tmp_path / "all.json").exists()
