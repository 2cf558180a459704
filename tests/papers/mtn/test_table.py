"""The paper's tables: our means, empty cells where there is nothing, and the printed numbers."""

from dataclasses import replace

import numpy as np
import pytest

from actionspan.evaluation.settings import EvaluationSettings
from actionspan_papers.experiments import table_cells
from actionspan_papers.mtn.published import TABLES
from actionspan_papers.mtn.table import (
    EXPERIMENT,
    Measured,
    measured_words,
    read_video_scores,
    table_rows,
    why_not,
)
from evaluation.scores import write_scores
from papers.mtn.runs import scores_of, write_features
from papers.steps import step_rows

SETTINGS = EvaluationSettings(resamples=200)
MEASURED = "features of X, on the set Y, subset validation"
LEVELS = {
    "mtn": (0.6, 0.7, 0.9),
    "mtn-seed2": (0.8, 0.7, 0.7),
    "origin": (0.5, 0.6, 0.7),
    "random": (0.1, 0.2, 0.3),
}


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    return scores_of(tmp_path_factory.mktemp("scores"), LEVELS)


def cells(name, scores):
    columns, rows = table_cells(table_rows(name, scores, SETTINGS), {})
    return {row[0]: dict(zip(columns, row, strict=True)) for row in rows}


def caption_of(name, scores):
    rows = table_rows(name, scores, SETTINGS)
    return EXPERIMENT.table(None, (name, Measured(scores, MEASURED), rows), SETTINGS).caption


def run(folder, levels, table="table3"):
    """Return the rows of a table, and the lines of its page."""
    paths = [write_scores(folder / f"{name}.tsv", own) for name, own in levels.items()]
    words = ["--table", table, "--features", write_features(folder, "features", "videos")]
    rows = step_rows(folder, "mtn", "table", *words, "--videos", *paths)
    return rows, (folder / "table.md").read_text().splitlines()


def test_ours_are_instance_weighted_means_over_seeds_and_the_rest_is_empty(scores):
    table = cells("table1", scores)
    mtn = table["mtn"]
    # instances 1, 2, 3
    mean = 100 * np.mean([(0.6 + 2 * 0.7 + 3 * 0.9) / 6, (0.8 + 2 * 0.7 + 3 * 0.7) / 6])
    assert (mtn["AR@100"], mtn["AUC"], mtn["seeds"]) == (f"{mean:.2f}", f"{0.9 * mean:.2f}", "2")
    # an interval does not depend on the methods beside it
    assert mtn == cells("table1", {"mtn": scores["mtn"]})["mtn"]
    # two seeds 5 points apart: t with 1 degree of freedom, 12.7, times 2.5, and the videos' part
    low, high = (float(mtn[f"AR@100_{end}"]) for end in ("low", "high"))
    assert low < mean - 12.7062 * abs(0.6 + 2.7 - 0.8 - 2.1) * 100 / 6 / 2
    assert high == 100, "no more than a percentage can be"
    assert (mtn["AR@100_published"], table["origin"]["seeds"]) == ("75.6", "1")
    assert table["random"]["AUC_published"] == table["random"]["published_source"] == ""
    for name in ("tag", "Dai et al.", "Yao et al.", "se", "dense"):
        assert {table[name][key] for key in ("seeds", "AUC", "AUC_low", "AR@100_high")} == {""}
    assert table["Dai et al."]["AR@100_published"] == ""
    assert table["Dai et al."]["AUC_published"] == "59.58"


def test_rows_of_ours_alone_come_first_then_those_of_the_paper_in_its_order(scores):
    order = ["random", "tag", "Dai et al.", "Yao et al.", "origin", "se", "dense", "mtn"]
    assert list(cells("table1", scores)) == order
    assert list(cells("table2", scores))[:5] == ["random", "DAPs", "SCNN-prop", "SST", "TURN"]
    # the ablation has its four models first
    assert list(cells("table3", scores)) == ["origin", "se", "dense", "mtn", "random"]


def test_numbers_that_the_lists_are_too_short_for_are_empty(scores, tmp_path):
    mtn = cells("table2", scores)["mtn"]
    assert mtn["AR@100"] != ""
    assert [mtn[f"AR@200{end}"] for end in ("", "_low", "_high")] == [""] * 3
    assert mtn["AR@200_published"] == "46.24"
    path = write_scores(tmp_path / "mtn.tsv", (0.6, 0.7, 0.9), long_lists=True)
    assert cells("table2", read_video_scores([path]))["mtn"]["AR@500"] == "78.33"


def test_the_caption_says_on_what_ours_was_measured(scores):
    caption = "\n".join(caption_of("table2", scores))
    assert (
        "features of X, on the set Y, subset validation (3 videos with instances, 6 instances). "
        "Mean over 2 seeds (origin, random: 1) and, in brackets, the 95 % interval over videos "
        "(bootstrap, 200 resamples) and seeds (Student's t), of one seed over videos only."
    ) in caption
    alone = measured_words(
        {name: scores[name] for name in ("origin", "random")}, MEASURED, SETTINGS
    )
    assert "Mean over 1 seed and, in brackets" in alone
    assert "interval over videos only (bootstrap, 200 resamples)" in alone
    assert "Student" not in alone


@pytest.mark.parametrize("gain", [-0.1, 0.0, 0.1, None])
def test_the_caption_says_where_mtn_is_not_above_bsn(tmp_path, gain):
    """In each measure that has a value; nothing where it is above, or there are no two methods."""
    gains = {"mtn": 0.3} if gain is None else {"origin": 0.2, "mtn": 0.2 + gain}
    paths = [
        write_scores(tmp_path / f"{name}.tsv", (0.3, 0.4), gain=own) for name, own in gains.items()
    ]
    caption = caption_of("table2", read_video_scores(paths))
    said = "MTN is not above BSN (origin) here in AR@50, AR@100; in the paper it is in all."
    found = [text for text in caption if "is not above BSN (origin)" in text]
    assert found == ([said] if gain in (-0.1, 0.0) else [])


def test_the_interval_of_one_seed_does_not_hold_what_seeds_would_add(scores):
    one = scores["origin"]
    two = replace(one, values=np.concatenate([one.values - 1, one.values + 1]), seeds=(1, 2))
    alone, both = (cells("table1", {"origin": known})["origin"] for known in (one, two))
    assert alone["AUC"] == both["AUC"]
    # means 2 points apart: half their t interval, with 1 degree of freedom, is 12.7062
    for end in ("AUC_low", "AUC_high"):
        videos, too = (abs(float(row[end]) - float(row["AUC"])) for row in (alone, both))
        assert too == pytest.approx(np.hypot(videos, 12.7062), abs=0.02)


@pytest.mark.parametrize(
    ("proposals", "metric", "reason"),
    [
        ([[100, 100, 100]], "thumos14_AR@200", "too few proposals"),
        ([[100, 100, 100]], "thumos14_AR@100", "no frame rates"),
        ([[300, 300, 0]], "thumos14_AR@200", "no frame rates"),  # the mean of those that have any
        ([[300, 300, 300], [200, 200, 100]], "thumos14_AR@200", "too few proposals"),
        ([[5100, 5100, 5100]], "thumos14_AR@50", "too many proposals"),
        ([[0, 0, 0]], "thumos14_AR@50", "too few proposals"),
    ],
)
def test_why_there_is_no_value(scores, proposals, metric, reason):
    assert why_not(replace(scores["mtn"], proposals=np.array(proposals)), metric) == reason


def test_markdown_says_why_a_cell_is_empty_and_the_caption_what_to_do(scores, tmp_path):
    _, lines = run(tmp_path, LEVELS, "table2")
    (mtn,) = ([c.strip() for c in line.split("|")] for line in lines if line.startswith("| mtn"))
    assert mtn[5:7] == ["too few proposals"] * 2
    assert mtn[3].startswith(f"{cells('table2', scores)['mtn']['AR@50']} [")
    (note,) = (line for line in lines if line.startswith("No value, too few proposals: "))
    assert "proposals.suppression.keep" in note


def test_published_numbers_rise_with_the_average_number_and_agree_between_tables():
    for name in ("table2", "table3"):
        for row in TABLES[name].rows.values():
            recalls = [float(row.values[one]) for one in TABLES[name].metrics if one != "AUC"]
            assert recalls == sorted(recalls)
    for method in ("origin", "se", "dense", "mtn"):
        one, other = (TABLES[table].rows[method].values for table in ("table1", "table3"))
        for metric in ("AR@100", "AUC"):
            assert one[metric] == other[metric]
    assert "AR@100" not in TABLES["table1"].rows["Dai et al."].values


def test_the_command_writes_both_forms(tmp_path):
    names = ["origin", "se", "dense", "mtn"]
    rows, page = run(tmp_path, dict.fromkeys(names, (0.5, 0.6)))
    assert [row["method"] for row in rows] == names
    assert page[0].startswith("Table 3 of paper 001")
    assert not [line for line in page if "No value" in line]
    lines = [line for line in page if line.startswith("|")]
    assert (len(lines), len({line.count("|") for line in lines})) == (2 + 4, 1)
