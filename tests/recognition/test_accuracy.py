"""`actionspan recognition accuracy`: both streams of a run, and their mean."""

import pytest

from actionspan.cli import main
from actionspan.storage.writing import read_tsv
from papers.aavg.runs import write_scores


def run(folder, rgb, flow):
    words = ["--rgb", rgb, "--flow", flow, "--out-tsv", folder / "a.tsv"]
    words += ["--out-markdown", folder / "a.md"]
    return main(["recognition", "accuracy", *map(str, words)])


def test_streams_together_may_be_right_where_one_is_wrong(tmp_path):
    """Labels are calm, fight, calm, fight; the numbers are the probabilities of the right class."""
    rgb = write_scores(tmp_path, "rgb", "rgb", [0.9, 0.2, 0.4, 0.9])
    flow = write_scores(tmp_path, "flow", "flow", [0.6, 0.9, 0.3, 0.3])
    assert run(tmp_path, rgb, flow) == 0
    assert [list(row.values()) for row in read_tsv(tmp_path / "a.tsv")] == [
        ["all", "4", "50.00", "50.00", "75.00"],
        ["calm", "2", "50.00", "50.00", "50.00"],
        ["fight", "2", "50.00", "50.00", "100.00"],
    ]
    assert "| fight | 2 | 50.00 | 50.00 | 100.00 |" in (tmp_path / "a.md").read_text()


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"clips": ["a", "b"]}, "flow/flow/scores.json: clips differ from "),
        ({"classes": ["calm", "run"]}, "scores.json: classes differ from "),
    ],
)
def test_scores_of_other_clips_are_refused(tmp_path, capsys, changed, line):
    rgb = write_scores(tmp_path, "rgb", "rgb", [0.9, 0.2])
    flow = write_scores(tmp_path, "flow", "flow", [0.9, 0.2], **changed)
    assert run(tmp_path, rgb, flow) == 2
    assert line in capsys.readouterr().err


def test_no_clip_is_one_line(tmp_path, capsys):
    rgb, flow = (write_scores(tmp_path, name, name, []) for name in ("rgb", "flow"))
    assert run(tmp_path, rgb, flow) == 2
    assert "no validation clip; give clips for validation" in capsys.readouterr().err
