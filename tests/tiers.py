"""Parameters and examples of which only a few belong to `make test`; `make test-all` has all."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def first_tier(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return values for `parametrize`; all but those that are kept are of the second tier."""

    def second(value: Any) -> Any:
        words = value if isinstance(value, tuple) else (value,)
        return pytest.param(*words, marks=pytest.mark.full)

    values = list(values)
    assert all(value in values for value in kept), "a value that is kept must be there"
    return [value if value in kept else second(value) for value in values]


def examples(most: int, first: int | None = None, **more: Any) -> settings:
    """Try a property on so many examples; in the first tier on `first`, or no more than others."""
    usual = settings.get_profile("first tier").max_examples
    is_first = settings().max_examples == usual
    return settings(max_examples=(first or min(most, usual)) if is_first else most, **more)
