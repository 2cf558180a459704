"""`actionspan dataset subset` lists the videos of a subset, or says what to do if it is empty."""

import json

import pytest

from actionspan.storage.writing import read_tsv
from worlds.command import actionspan


@pytest.fixture
def listed(tmp_path):
    def run(subset, *videos):
        """Videos are (subset, instances)."""
        database = {
            f"v{number}": {
                "subset": name,
                "duration": 9.5,
                "annotations": [{"segment": [1, 2 + i], "label": "a"} for i in range(instances)],
            }
            for number, (name, instances) in enumerate(videos)
        }
        path = tmp_path / "annotations.json"
        path.write_text(json.dumps({"name": "set", "database": database}))
        words = ("--annotations", path, "--out", tmp_path / "list.tsv")
        return actionspan("dataset", "subset", "--subset", subset, *words)

    return run


def test_the_list_has_each_video_of_the_subset(listed, tmp_path):
    assert listed("validation", ("validation", 2), ("training", 1), ("validation", 0)) == 0
    assert read_tsv(tmp_path / "list.tsv") == [
        {"video_id": "v0", "duration_seconds": "9.5", "instances": "2"},
        {"video_id": "v2", "duration_seconds": "9.5", "instances": "0"},
    ]


@pytest.mark.parametrize(
    ("subset", "videos", "cure"),
    [
        ("validation", [("training", 3)], "annotate at least two videos"),
        ("validation", [("training", 3), ("validation", 0)], "annotate at least two videos"),
        ("validation", [("training", 3), ("training", 1)], "or evaluation.folds to score"),
        ("training", [("testing", 3), ("testing", 1)], "name training videos in the column"),
    ],
)
def test_an_empty_subset_is_one_line_that_says_what_to_do(
    listed, tmp_path, capsys, subset, videos, cure
):
    assert listed(subset, *videos) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"annotations.json: no {subset} video has an instance (" in line
    assert cure in line
    assert not (tmp_path / "list.tsv").exists()
