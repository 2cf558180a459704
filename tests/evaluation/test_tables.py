"""The paper's tables: our means, empty cells where there is nothing, and the printed numbers."""

import re
from pathlib import Path

import numpy as np
import pytest

from actionspan.cli import main
from actionspan.evaluation.published import TABLES, published_value
from actionspan.evaluation.summary import EvaluationSettings
from actionspan.evaluation.tables import MeasuredOn, table_caption, table_cells, table_rows
from actionspan.evaluation.video_scores import read_video_scores
from actionspan.storage import read_tsv
from evaluation.scores import write_scores

SETTINGS = EvaluationSettings(resamples=200)
PAPER = Path(__file__).parents[2].parent / "shared" / "papers" / "001_16e44f1a53758f77.txt"


@pytest.fixture
def scores(tmp_path):
    levels = {
        "mtn": (0.6, 0.7, 0.9),
        "mtn-seed2": (0.8, 0.7, 0.7),
        "origin": (0.5, 0.6, 0.7),
        "random": (0.1, 0.2, 0.3),
    }
    paths = [write_scores(tmp_path / f"{name}.tsv", values) for name, values in levels.items()]
    return read_video_scores(paths)


def cells(name, scores):
    columns, rows = table_cells(name, table_rows(name, scores, SETTINGS))
    return {row[0]: dict(zip(columns, row, strict=True)) for row in rows}


def test_ours_are_instance_weighted_means_over_seeds_and_the_rest_is_empty(scores):
    table = cells("table1", scores)
    # instances 1, 2, 3
    mean = 100 * np.mean([(0.6 + 2 * 0.7 + 3 * 0.9) / 6, (0.8 + 2 * 0.7 + 3 * 0.7) / 6])
    assert table["mtn"]["AR@100"] == f"{mean:.2f}"
    assert table["mtn"]["AUC"] == f"{0.9 * mean:.2f}"
    assert table["mtn"]["seeds"] == "2"
    low, high = (float(table["mtn"][f"AR@100_{end}"]) for end in ("low", "high"))
    assert 60 <= low <= mean <= high <= 90
    assert table["mtn"]["AR@100_published"] == "75.6"
    assert table["origin"]["seeds"] == "1"
    assert table["random"]["AUC_published"] == table["random"]["published_source"] == ""
    for name in ("tag", "Dai et al.", "Yao et al.", "se", "dense"):
        assert {table[name][key] for key in ("seeds", "AUC", "AUC_low", "AR@100_high")} == {""}
    assert table["Dai et al."]["AR@100_published"] == ""
    assert table["Dai et al."]["AUC_published"] == "59.58"


def test_rows_of_ours_alone_come_first_then_those_of_the_paper_in_its_order(scores):
    order = ["random", "tag", "Dai et al.", "Yao et al.", "origin", "se", "dense", "mtn"]
    assert list(cells("table1", scores)) == order
    assert list(cells("table2", scores))[:5] == ["random", "DAPs", "SCNN-prop", "SST", "TURN"]


def test_an_interval_does_not_depend_on_the_methods_beside_it(scores):
    alone = cells("table1", {"mtn": scores["mtn"]})["mtn"]
    assert alone == cells("table1", scores)["mtn"]


def test_numbers_that_the_lists_are_too_short_for_are_empty(scores, tmp_path):
    table = cells("table2", scores)
    assert table["mtn"]["AR@100"] != ""
    for end in ("", "_low", "_high"):
        assert table["mtn"][f"AR@200{end}"] == ""
    assert table["mtn"]["AR@200_published"] == "46.24"
    path = write_scores(tmp_path / "long" / "mtn.tsv", (0.6, 0.7, 0.9), long_lists=True)
    assert cells("table2", read_video_scores([path]))["mtn"]["AR@500"] == "78.33"


def test_one_video_and_seed_have_an_interval_of_no_width(tmp_path):
    scores = read_video_scores([write_scores(tmp_path / "mtn.tsv", (0.6,))])
    row = cells("table3", scores)["mtn"]
    assert row["AUC"] == row["AUC_low"] == row["AUC_high"] == "54.00"


def test_the_caption_says_on_what_ours_was_measured(scores):
    measured = MeasuredOn(features="features of X", data="the set Y", subset="validation")
    caption = table_caption("table2", scores, measured, SETTINGS)
    assert "features of X, on the set Y, subset validation" in caption
    assert "(3 videos with instances, 6 instances)" in caption
    assert "Mean over 2 seeds (origin, random: 1)" in caption
    assert "the 95 % interval of a bootstrap over videos and seeds (200 resamples)" in caption
    assert "of other features and other data" in caption


def test_published_numbers_are_those_of_the_paper():
    if not PAPER.is_file():
        pytest.skip(f"the papers are not here: {PAPER} is missing")
    printed = set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", PAPER.read_text()))
    for name, table in TABLES.items():
        for row in table.rows:
            for metric, cell in row.values.items():
                fraction = f"{float(cell) / 100:.3f}"
                is_fraction = name != "table2" and metric != "AUC"
                assert (fraction if is_fraction else cell) in printed, (name, row.method, metric)


def test_published_numbers_rise_with_the_average_number_and_agree_between_tables():
    for name in ("table2", "table3"):
        for row in TABLES[name].rows:
            recalls = [float(row.values[one]) for one in TABLES[name].metrics if one != "AUC"]
            assert recalls == sorted(recalls)
    for method in ("origin", "se", "dense", "mtn"):
        for metric in ("AR@100", "AUC"):
            values = [published_value(table, method, metric) for table in ("table1", "table3")]
            assert values[0] == values[1] is not None
    assert published_value("table1", "Dai et al.", "AR@100") is None
    assert published_value("table1", "nobody", "AUC") is None


def run(tmp_path, *paths, table="table3"):
    words = ["--table", table, "--features-are", "features", "--data-are", "videos"]
    out = ["--out-tsv", str(tmp_path / "t.tsv"), "--out-markdown", str(tmp_path / "t.md")]
    return main(["evaluation", "table", *words, *out, "--videos", *map(str, paths)])


def test_the_command_writes_both_forms(tmp_path):
    paths = [
        write_scores(tmp_path / f"{name}.tsv", (0.5, 0.6))
        for name in ("origin", "se", "dense", "mtn")
    ]
    assert run(tmp_path, *paths) == 0
    rows = read_tsv(tmp_path / "t.tsv")
    assert [row["method"] for row in rows] == ["origin", "se", "dense", "mtn"]
    markdown = (tmp_path / "t.md").read_text().splitlines()
    assert markdown[0].startswith("Table 3 of paper 001")
    lines = [line for line in markdown if line.startswith("|")]
    assert len(lines) == 2 + 4
    assert len({line.count("|") for line in lines}) == 1
    before = (tmp_path / "t.tsv").read_bytes(), (tmp_path / "t.md").read_bytes()
    assert run(tmp_path, *paths) == 0
    assert before == ((tmp_path / "t.tsv").read_bytes(), (tmp_path / "t.md").read_bytes())


def test_the_command_names_a_bad_file_in_one_line(tmp_path, capsys):
    path = tmp_path / "mtn.tsv"
    path.write_text("video_id\tinstances\na\t1\n")
    assert run(tmp_path, path) != 0
    assert capsys.readouterr().err.splitlines() == [
        f"actionspan evaluation: {path}: no column 'AR@1'"
    ]
    assert not (tmp_path / "t.tsv").exists()
