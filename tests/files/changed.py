"""JSON as someone, or a damaged disk, may have changed it."""

import copy
from collections.abc import Iterator
from typing import Any

_AT_EACH_END = 3  # elements of a list that are changed
VALUES: tuple[Any, ...] = (
    *(None, True, "x", "0.5", "", -1, 0, 1.5, 10**400, float("nan"), float("inf")),
    *([], [1], [[1, 2]], {}, {"x": 1}),
)


def changes(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield a text that tells the change, and the content with one value another or left out."""
    for place in _places(content):
        for value in (..., *VALUES):
            changed = copy.deepcopy(content)
            inside = changed
            for key in place[:-1]:
                inside = inside[key]
            if value is not ...:
                inside[place[-1]] = value
            elif isinstance(inside, dict) and isinstance(inside[place[-1]], list):
                inside[place[-1]].append(1.0)
            elif isinstance(inside, dict):
                inside[f"{place[-1]}x"] = inside.pop(place[-1])
            else:
                del inside[place[-1]]
            yield f"{'/'.join(map(str, place))}: {value}"[:100], changed


def _places(content: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys: list[Any] = list(content) if isinstance(content, dict) else []
    if isinstance(content, list):
        keys = sorted({*range(len(content))[:_AT_EACH_END], *range(len(content))[-_AT_EACH_END:]})
    for key in keys:
        yield (*above, key)
        yield from _places(content[key], (*above, key))
