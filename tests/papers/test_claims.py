"""The rule of the verdicts, and their report."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.papers.claims import (
    CLAIM_COLUMNS,
    VERDICTS,
    Finding,
    claim_cells,
    claims_markdown,
    judge,
)

REPRODUCED, NOT, UNKNOWN = VERDICTS
NAN = float("nan")
FOUND = Finding(
    claim="a helps",
    source="paper, table 1",
    measure="AUC",
    better="with",
    worse="without",
    difference=1.234,
    low=0.5,
    high=2.0,
    published=None,
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


def test_what_is_not_known_is_empty():
    row = dict(zip(CLAIM_COLUMNS, claim_cells([FOUND])[0], strict=True))
    assert row["difference"] == "+1.23"
    assert (row["difference_low"], row["difference_high"]) == ("+0.50", "+2.00")
    assert row["published_difference"] == ""
    cells = claim_cells([replace(FOUND, difference=NAN, low=NAN, high=NAN, published=-0.5)])[0]
    assert cells[5:9] == ["", "", "", "-0.50"]
    assert claim_cells([replace(FOUND, digits=4)])[0][5] == "+1.2340"


def test_the_report_counts_and_lists():
    others = [replace(FOUND, low=NAN, high=NAN, verdict=UNKNOWN), replace(FOUND, verdict=UNKNOWN)]
    lines = claims_markdown([FOUND, *others], "003", ["Some words."]).splitlines()
    assert lines[0] == (
        "Claims of paper 003 on our data: 1 reproduced, 0 not reproduced, "
        "2 not testable on this data."
    )
    assert lines[1] == "Some words."
    assert "| with, without | +1.23 [+0.50, +2.00] |  | **reproduced** |" in lines[5]
    assert "| +1.23 |  | **not testable" in lines[6]
