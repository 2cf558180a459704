"""What scores mean: bins, shares and errors by hand, ranks by definition, any scale."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, rankdata

from actionspan.annotations.tables import write_annotations
from actionspan.evaluation.reliability import (
    COLUMNS,
    ScoredProposals,
    calibration_errors,
    error_by_luck,
    rank_correlation,
    reliability_markdown,
    score_bins,
    scored_proposals,
    table_rows,
)
from actionspan.report.figures.methods import draw_reliability
from actionspan.storage.writing import read_tsv
from tiers import examples, first_tier
from worlds.command import actionspan
from worlds.scored import annotated, write_results

# `a` has an instance of 10 s, found twice (tIoU 0.8, then 0.5); `calm` has none.
ANNOTATIONS = [annotated("a", (0, 10)), annotated("calm")]
DIAGONAL = "<!-- as the score states -->"  # as the figure comments its outlined text
PROPOSALS = {
    "a": [(0, 5, 0.6), (0, 8, 0.9), (12, 14, 0.1)],
    "calm": [(3, 4, 0.4)],
    "elsewhere": [(0, 1, 1.0)],
}


@pytest.fixture
def scored():
    return scored_proposals(ANNOTATIONS, PROPOSALS)


def test_counts_by_hand(scored):
    assert scored.videos == 2
    assert scored.scores.tolist() == [0.9, 0.6, 0.1, 0.4]  # best first within each video
    assert scored.best_tiou.tolist() == [0.8, 0.5, 0.0, 0.0]
    assert scored.first.tolist() == [[True, True], [False, False], [False, False], [False, False]]
    low, high = score_bins(scored, 2)
    assert (low.proposals, low.lowest, low.highest) == (2, 0.1, 0.4)
    assert (low.mean_score, low.mean_tiou) == (0.25, 0)
    assert (low.share, low.first) == ((0, 0), (0, 0))
    assert (high.mean_score, high.mean_tiou) == (0.75, 0.65)
    assert (high.share, high.first) == ((1, 0.5), (0.5, 0.5))
    expected, chance = calibration_errors(scored, [low, high])
    assert expected == pytest.approx((0.25 + 0.10) / 2)
    assert chance == pytest.approx((0.25 + 0.25) / 2)
    # ranks of the scores 4, 3, 1, 2; of the tIoU 4, 3, 1.5, 1.5
    assert rank_correlation(scored.scores, scored.best_tiou) == pytest.approx(
        4.5 / np.sqrt(5.0 * 4.5)
    )


def test_a_proposal_takes_the_free_instance_that_it_overlaps_most():
    # tIoU with (0, 10) and (4, 14): 0.9 and 5/14; 8/12 and 8/12
    rows = [(0, 9, 0.9), (2, 12, 0.8), (0, 10, 0.7), (4, 14, 0.6)]
    scored = scored_proposals([annotated("a", (0, 10), (4, 14))], {"a": rows})
    assert scored.best_tiou.tolist() == [0.9, 8 / 12, 1, 1]
    # at 0.5 the second takes what the first left, and nothing is left; at 0.7 it finds nothing
    assert scored.first.tolist() == [[True, True], [True, False], [False, False], [False, True]]


def test_an_instance_of_no_length_is_found_by_nothing():
    scored = scored_proposals([annotated("a", (4, 4))], {"a": [(4, 4, 1.0), (3, 5, 0.5)]})
    assert scored.best_tiou.tolist() == [0, 0]
    assert not scored.first.any()


values = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=20)


@given(values, st.lists(st.integers(0, 3).map(float), min_size=20, max_size=20))
def test_rank_correlation_by_definition_and_whatever_the_scale(scores, more):
    ranks = [
        1 + sum(other < score for other in scores) + (scores.count(score) - 1) / 2
        for score in scores
    ]
    quality = more[: len(scores)]
    correlation = rank_correlation(scores, quality)
    if len(set(scores)) == 1 or len(set(quality)) == 1:
        assert correlation is None
    else:
        assert correlation == pytest.approx(np.corrcoef(ranks, rankdata(quality))[0, 1])
        scaled = rank_correlation(np.exp(3 * np.array(scores)), quality)
        assert scaled == pytest.approx(correlation)


rows = st.tuples(st.integers(0, 39), st.integers(1, 20), st.integers(0, 4)).map(
    lambda x: (x[0] / 2, (x[0] + x[1]) / 2, x[2] / 4)
)


@examples(60)
@given(st.lists(rows, max_size=40), st.lists(rows, max_size=5), st.integers(1, 12))
def test_bins_hold_each_proposal_once_and_sum_to_the_whole(one, other, count):
    scored = scored_proposals(ANNOTATIONS, {"a": one, "calm": other})
    bins = score_bins(scored, count)
    sizes = [row.proposals for row in bins]
    assert sum(sizes) == len(one) + len(other) == len(scored.scores)
    if not sizes:
        assert calibration_errors(scored, bins) is None
        return
    assert len(sizes) == min(count, sum(sizes))
    assert max(sizes) - min(sizes) <= 1
    for before, after in zip(bins, bins[1:], strict=False):
        assert before.highest <= after.lowest
    for column, threshold in enumerate((0.5, 0.7)):
        share = np.average([row.share[column] for row in bins], weights=sizes)
        assert share == pytest.approx(np.mean(scored.best_tiou >= threshold - 1e-9))
        assert all(row.first[column] <= row.share[column] for row in bins)
        assert sum(row.first[column] * row.proposals for row in bins) <= 1 + 1e-9  # one instance
    errors = calibration_errors(scored, bins)
    assert all(0 <= error <= 1 for error in errors)
    # no bins average their errors away below the error of the whole
    gap = abs(scored.scores.mean() - scored.best_tiou.mean())
    assert errors[0] >= gap - 1e-9


@pytest.mark.parametrize("scale", [100.0, -1.0, 1e6])
def test_scores_beyond_a_share_have_no_calibration_error_but_an_order(tmp_path, scale):
    scaled = {
        name: [(start, end, scale * score) for start, end, score in items]
        for name, items in PROPOSALS.items()
    }
    scored = scored_proposals(ANNOTATIONS, scaled)
    bins = score_bins(scored)
    assert calibration_errors(scored, bins) is None
    table = [dict(zip(COLUMNS, row, strict=True)) for row in table_rows(scored, bins)]
    assert {row["error_tiou"] for row in table} == {row["error_0.5"] for row in table} == {None}
    assert (float(table[0]["rank_correlation"]) > 0) == (scale > 0)
    page = reliability_markdown(scored, bins, "mine", "validation")
    assert "have no calibration error" in page
    draw_reliability(tmp_path / "figure.svg", scored, bins, "mine")
    assert DIAGONAL not in (tmp_path / "figure.svg").read_text()


def test_the_table_holds_the_whole_and_each_bin(scored):
    table = [dict(zip(COLUMNS, row, strict=True)) for row in table_rows(scored, score_bins(scored))]
    assert [row["bin"] for row in table] == ["all", 1, 2, 3, 4]
    assert table[0]["mean_score"] == 0.5
    assert table[0]["error_tiou"] == pytest.approx(
        np.mean([row["error_tiou"] for row in table[1:]])
    )
    assert table[0]["share@0.5"] == 0.5
    assert table[0]["first@0.5"] == 0.25
    assert [row["rank_correlation"] for row in table[1:]] == [None] * 4


SCORED: dict[str, Any] = {
    "none": {},
    "one": {"calm": [(1, 2, 0.5)]},
    "zeros": {"a": [(0, 10, 0.0)] * 30},
    "ones": {"a": [(0, 10, 1.0)] * 30},
    "equal": {"a": [(0, 10, -3.0), (0, 10, -3.0)]},
    "four": PROPOSALS,
}


@pytest.mark.parametrize("name", first_tier(SCORED, "none", "ones", "four"))
def test_every_method_has_its_files(tmp_path, name):
    proposals = SCORED[name]
    scored = scored_proposals(ANNOTATIONS, proposals)
    bins = score_bins(scored)
    assert all(len(row) == len(COLUMNS) for row in table_rows(scored, bins))
    page = reliability_markdown(scored, bins, "mine", "validation")
    widths = {line.count("|") for line in page.splitlines() if line.startswith("|")}
    assert widths == ({8} if bins else set())
    assert "nan" not in page
    draw_reliability(tmp_path / "figure.svg", scored, bins, "a $x$ & <b>")
    ET.parse(tmp_path / "figure.svg")


@pytest.fixture
def folder(tmp_path):
    write_annotations(tmp_path / "annotations.json", ANNOTATIONS)
    write_results(tmp_path / "proposals.json", PROPOSALS)
    return tmp_path


def run(folder, subset="validation"):
    words = ["--proposals", folder / "proposals.json", "--annotations", folder / "annotations.json"]
    words += ["--subset", subset, "--method", "mine", "--out-table", folder / "out/mine.tsv"]
    words += ["--out-markdown", folder / "out/mine.md", "--out-figure", folder / "out/mine.svg"]
    return actionspan("evaluation", "reliability", *words)


def test_the_command_writes_three_files(folder):
    assert run(folder) == 0
    table = read_tsv(folder / "out/mine.tsv")
    assert [row["proposals"] for row in table] == ["4", "1", "1", "1", "1"]
    page = (folder / "out/mine.md").read_text()
    assert "All 4 proposals of the 2 videos of subset validation" in page
    assert "into 4 bins of equally many" in page
    assert re.search(r"\| 0\.9 – 0\.9 \| 1 \| 0\.9 \| 0\.800 \| 100\.0 % \| 100\.0 % \|", page)
    ET.parse(folder / "out/mine.svg")
    assert DIAGONAL in (folder / "out/mine.svg").read_text()


def test_luck_alone_makes_an_error_that_falls_with_the_number_of_proposals():
    """The mean of |X − n/2| / n of a binomial X of n and 1/2: about √(1 / 2πn)."""
    for count in (4, 400):
        first = np.zeros((count, 2), bool)
        scores, tious = np.full(count, 0.5), np.zeros(count)
        scored = ScoredProposals(scores=scores, best_tiou=tious, first=first, videos=1)
        exact = float(binom(count, 0.5).expect(lambda right, n=count: abs(right / n - 0.5)))
        found = error_by_luck(scored, score_bins(scored, 1))
        assert found == pytest.approx(exact, rel=0.1)
    assert error_by_luck(scored, []) is None
