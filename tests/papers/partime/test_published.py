"""The printed numbers, spot by spot."""

import pytest

from actionspan_papers.partime.published import SPEEDUPS, Cell, printed_range


@pytest.mark.parametrize(
    ("cell", "printed"),
    [
        (Cell("plain", "inference", False, 256, 1, 2), 1.12),
        (Cell("plain", "inference", True, 1024, 1, 8), 7.14),
        (Cell("plain", "learning", True, 256, 10, 4), 4.11),
        (Cell("plain", "learning", False, 1024, 100, 8), 5.57),
        (Cell("pooled", "inference", True, 256, 1, 2), 0.78),
        (Cell("pooled", "inference", True, 1024, 10, 8), 2.52),
        (Cell("resnet", "inference", False, 256, 100, 8), 0.98),
        (Cell("resnet", "inference", True, 1024, 100, 4), 3.28),
    ],
)
def test_a_cell_is_as_printed(cell, printed):
    assert SPEEDUPS[cell] == printed


def test_every_cell_is_there():
    assert len(SPEEDUPS) == 4 * 6 * 6


def test_ranges_are_those_of_the_tables():
    assert printed_range("plain", "learning", 2, graph=True) == "1.89 to 1.99"
    assert printed_range("pooled", "inference", 8, graph=False) == "1.00 to 1.49"
    assert printed_range("resnet", "learning", 2, graph=True) == ""
