"""Files of runs by their seeds."""

import pytest

from actionspan.errors import InputError
from actionspan_papers.runs import by_seed


def test_seeds_rise_and_runs_keep_their_order():
    files = by_seed([("b", 10, "x"), ("a", 1, "y"), ("b", 2, "z")])
    assert [(key, list(seeds.items())) for key, seeds in files.items()] == [
        ("b", [(2, "z"), (10, "x")]),
        ("a", [(1, "y")]),
    ]
    with pytest.raises(InputError, match="second: a-seed3 is in first already"):
        by_seed([(("a", "rgb"), 3, "first"), (("a", "rgb"), 3, "second")])
