"""The verdict that two ways are alike."""

import pytest

from actionspan.papers.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED
from actionspan.papers.sbp.equivalence import within


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-4.9, 4.9, REPRODUCED),
        (1, 2, REPRODUCED),  # not equal, and within the margin all the same
        (-5.1, 1, NOT_TESTABLE),
        (-1, 5.1, NOT_TESTABLE),
        (-9, 9, NOT_TESTABLE),
        (5.1, 7, NOT_REPRODUCED),
        (-7, -5.1, NOT_REPRODUCED),
    ],
)
def test_both_ends_have_to_lie_within_the_margin(low, high, verdict):
    found, why = within(5, "points")(low, high, None, "+.2f")
    assert found == verdict
    assert "±5 points" in why
