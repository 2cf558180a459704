"""Parameters of which only a few belong to `make test`; `make test-all` has all of them."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_tier(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return values for `parametrize`; all but those that are kept are of the second tier."""

    def second(value: Any) -> Any:
        words = value if isinstance(value, tuple) else (value,)
        return pytest.param(*words, marks=pytest.mark.full)

    values = list(values)
    assert all(value in values for value in kept), "a value that is kept must be there"
    return [value if value in kept else second(value) for value in values]
