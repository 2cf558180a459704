"""The rule of the verdicts, and their report."""

import argparse
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.storage.writing import read_tsv
from actionspan_papers.claims import VERDICTS, Claim, Finding, claims_experiment, judge
from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import table_cells

REPRODUCED, NOT, UNKNOWN = VERDICTS
NAN = float("nan")
CLAIM = Claim(
    text="a helps",
    source="paper, table 1",
    measure="AUC",
    key="AUC",
    better="with",
    worse="without",
)
FOUND = Finding(
    claim=CLAIM,
    difference=1.234,
    low=0.5,
    high=2.0,
    verdict=REPRODUCED,
    why="The interval lies above 0.",
)


@pytest.mark.parametrize(
    ("low", "high", "published", "verdict"),
    [
        (0.1, 2.0, 1.0, REPRODUCED),
        (5.0, 9.0, 1.0, REPRODUCED),
        (0.1, 2.0, None, REPRODUCED),
        (-2.0, -0.1, 1.0, NOT),
        (-2.0, -0.1, None, NOT),
        (-0.5, 0.5, 1.0, UNKNOWN),
        (0.0, 0.5, 1.0, UNKNOWN),
        (-3.0, 0.1, 5.0, UNKNOWN),
        (0.0, 0.0, 1.0, UNKNOWN),
        (0.0, 0.0, None, UNKNOWN),
        (-0.1, 0.1, 0.2, UNKNOWN),
        (-0.5, 1.5, 1.0, UNKNOWN),
        (0.0, 1.0, 1.0, UNKNOWN),
        (-0.5, 0.0, None, UNKNOWN),
        (-0.5, 0.5, None, UNKNOWN),
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
    estimate = Estimate(value=1.234, low=0.5, high=2.0)
    assert CLAIM.judged(estimate) == FOUND
    assert CLAIM.judged("Nobody looked.").why == "Nobody looked."
    assert CLAIM.judged("Nobody looked.").verdict == UNKNOWN
    # what sums in another order leave is no difference
    assert CLAIM.judged(replace(estimate, low=1e-12)).verdict == UNKNOWN
    strict = replace(CLAIM, rule=lambda low, high, published, form: (NOT, "Never."))
    assert strict.judged(estimate).verdict == NOT


def cells(finding):
    columns, (row,) = table_cells([finding.row()], {})
    return dict(zip(columns, row, strict=True))


def test_what_is_not_known_is_empty():
    row = cells(FOUND)
    assert row["difference"] == "+1.23"
    assert (row["difference_low"], row["difference_high"]) == ("+0.50", "+2.00")
    assert row["published_difference"] == ""
    published = replace(CLAIM, published=-0.5)
    row = cells(replace(FOUND, difference=NAN, low=NAN, high=NAN, claim=published))
    assert list(row.values())[5:9] == ["", "", "", "-0.50"]
    assert cells(replace(FOUND, claim=replace(CLAIM, form="+.4f")))["difference"] == "+1.2340"


def test_the_report_counts_and_lists(tmp_path):
    others = [replace(FOUND, low=NAN, high=NAN, verdict=UNKNOWN), replace(FOUND, verdict=UNKNOWN)]
    files = argparse.Namespace(out_tsv=tmp_path / "c.tsv", out_markdown=tmp_path / "c.md")
    judged = [FOUND, *others], ["Some words."]
    claims_experiment("003", lambda _: judged).run(files)
    lines = files.out_markdown.read_text().splitlines()
    assert len(read_tsv(files.out_tsv)) == 3
    assert lines[0] == (
        "Claims of paper 003 on our data: 1 reproduced, 0 not reproduced, "
        "2 not testable on this data."
    )
    assert lines[1] == "Some words."
    assert "| with, without | +1.23 [+0.50, +2.00] |  | **reproduced** |" in lines[5]
    assert "| +1.23 |  | **not testable" in lines[6]
