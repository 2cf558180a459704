"""`evaluation pool`: each video's proposals come from the fold that holds it out."""

import csv
import json

import pytest

from actionspan.cli import main
from actionspan.dataset.tables import Annotation, write_annotations

# The held-out videos of each fold; the others are its training videos.
OUT = {1: ("b", "d"), 2: ("a", "c")}


def row(start, score):
    return {"score": score, "segment": [start, start + 1.0]}


@pytest.fixture
def pool(tmp_path):
    """The command, on two folds; a score says which fold it is of, and c has no proposals."""
    for fold, out in OUT.items():
        known = [
            Annotation(
                video_id=name,
                subset="testing" if name in out else "training",
                duration_seconds=9.0,
            )
            for name in "abcd"
        ]
        write_annotations(tmp_path / f"{fold}.annotations.json", known)
        results = {name: [row(2.0, fold / 4), row(fold, fold / 8)] for name in "abd"}
        (tmp_path / f"{fold}.json").write_text(json.dumps({"results": results}))

    def run(folds=(1, 2), annotations=(1, 2)):
        files = ["--proposals", *(tmp_path / f"{fold}.json" for fold in folds), "--annotations"]
        files += [tmp_path / f"{fold}.annotations.json" for fold in annotations]
        outs = ["--out-json", tmp_path / "all.json", "--out-csv", tmp_path / "all.csv"]
        return main(["evaluation", "pool", *map(str, [*files, *outs])])

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
def test_folds_that_do_not_fit_are_one_line(pool, tmp_path, capsys, folds, annotations, line):
    assert pool(folds, annotations) == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "all.json").exists()


def test_folds_without_any_proposal_are_one_line(pool, tmp_path, capsys):
    for fold in OUT:
        (tmp_path / f"{fold}.json").write_text('{"results": {}}')
    assert pool() == 2
    assert "no fold has proposals of a held-out video" in capsys.readouterr().err
