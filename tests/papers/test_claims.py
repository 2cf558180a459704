"""The rule of the verdicts, and their report."""

import argparse
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.storage.writing import read_tsv
from actionspan_papers.claims import Claim, Finding, claims_experiment, judge, measured
from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import table_cells
from papers.steps import NOT, REPRODUCED, UNKNOWN

NAN = float("nan")
SIDES = {"better": "with", "worse": "without"}
CLAIM = Claim(text="a helps", source="paper, table 1", measure="AUC", key="AUC", **SIDES)
ESTIMATE = {"low": 0.5, "high": 2.0}
WHY = "The interval lies above 0."
FOUND = Finding(claim=CLAIM, difference=1.234, verdict=REPRODUCED, why=WHY, **ESTIMATE)


@pytest.mark.parametrize(
    ("low", "high", "published", "verdict"),
    [
        (0.1, 2.0, 1.0, REPRODUCED),
        (5.0, 9.0, 1.0, REPRODUCED),
        (-2.0, -0.1, None, NOT),
        (-0.5, 0.5, 1.0, UNKNOWN),
        (0.0, 0.5, 1.0, UNKNOWN),
        (0.0, 0.0, 1.0, UNKNOWN),
        (0.0, 0.0, None, UNKNOWN),
        (-0.5, 1.5, 1.0, UNKNOWN),
        (-0.5, 0.0, None, UNKNOWN),
    ],
)
def test_the_rule(low, high, published, verdict):
    found, why = judge(low, high, published)
    assert found == verdict
    assert why.endswith(".")
    if low <= 0 <= high and low < high and published is not None:
        assert ("outside" in why) == (not low <= published <= high)


@given(st.floats(-9, 9), st.floats(0, 9), st.none() | st.floats(0, 9))
def test_the_size_decides_no_verdict(low, width, published):
    assert judge(low, low + width, published)[0] == judge(low, low + width, None)[0]


def test_a_claim_is_judged_by_its_rule():
    estimate = Estimate(value=1.234, **ESTIMATE)
    assert CLAIM.judged(estimate) == FOUND
    assert CLAIM.judged("Nobody looked.").why == "Nobody looked."
    assert CLAIM.judged("Nobody looked.").verdict == UNKNOWN
    # what sums in another order leave is no difference
    assert CLAIM.judged(replace(estimate, low=1e-12)).verdict == UNKNOWN
    strict = replace(CLAIM, rule=lambda low, high, published, form: (NOT, "Never."))
    assert strict.judged(estimate).verdict == NOT


def test_a_claim_that_no_table_has_is_named():
    with pytest.raises(ValueError, match=r"ring/measured.tsv: no claim 'our_t4'"):
        measured("ring", {"our_t2": 1.0, "our_t4": 1.0})


@pytest.mark.parametrize(
    ("low", "high", "published", "words"),
    [
        (-3.0, 5.0, None, "640 videos (40 here), if our 1 is true"),
        (-3.0, 5.0, 2.0, "160 videos (40 here), if the published 2 is true"),
        (-0.5, 2.5, 3.0, "as much data again, where the published 3 lies outside"),
        (0.5, 2.0, None, ""),
    ],
)
def test_what_would_decide_follows_from_the_width(low, high, published, words):
    """Half a width of 4 falls to an effect of 1 with 16 times the videos, of 2 with 4 times."""
    estimate = Estimate(value=1.0, low=low, high=high, samples=40, unit="videos")
    assert replace(CLAIM, published=published).judged(estimate).decider() == words


@pytest.mark.parametrize(
    ("why", "needs"),
    [
        ("Not built: EAMSGD.", "building it"),
        ("Runs of mtn are missing.", "runs of them"),
        ("One seed of mtn shows nothing about the next.", "two seeds or more"),
        ("Not measured: make gpu writes it.", "`make gpu` on a machine with a GPU"),
        ("Nobody looked.", "other data"),
    ],
)
def test_what_would_decide_without_an_interval_follows_from_the_reason(why, needs):
    assert CLAIM.judged(why).decider() == needs


def cells(finding):
    columns, (row,) = table_cells([finding.row()], {})
    return dict(zip(columns, row, strict=True))


def test_what_is_not_known_is_empty():
    published = replace(CLAIM, published=-0.5)
    unknown = replace(FOUND, difference=NAN, low=NAN, high=NAN, claim=published)
    assert list(cells(FOUND).values())[5:9] == ["+1.23", "+0.50", "+2.00", ""]
    assert list(cells(unknown).values())[5:9] == ["", "", "", "-0.50"]
    names = ["difference", "difference_low", "difference_high", "published_difference"]
    assert list(cells(FOUND))[5:9] == names
    assert cells(replace(FOUND, claim=replace(CLAIM, form="+.4f")))["difference"] == "+1.2340"


def test_the_report_counts_and_lists(tmp_path):
    others = [replace(FOUND, low=NAN, high=NAN, verdict=UNKNOWN), replace(FOUND, verdict=UNKNOWN)]
    files = argparse.Namespace(out_tsv=tmp_path / "c.tsv", out_markdown=tmp_path / "c.md")
    claims_experiment("003", lambda _: ([FOUND, *others], ["Some words."])).run(files)
    lines = files.out_markdown.read_text().splitlines()
    assert len(read_tsv(files.out_tsv)) == 3
    counts = "1 reproduced, 0 not reproduced, 2 not testable on this data."
    assert lines[:2] == [f"Claims of paper 003 on our data: {counts}", "Some words."]
    assert "| with, without | +1.23 [+0.50, +2.00] |  | **reproduced** |" in lines[5]
    assert "| +1.23 |  | **not testable" in lines[6]
    assert lines[3].endswith("| why | would decide it |")
