"""JSON and files of torch as someone, or a damaged disk, may have changed them."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch

_AT_EACH_END = 3  # elements of a list that are changed
VALUES: tuple[Any, ...] = (
    *(None, True, "x", "0.5", "", -1, 0, 1.5, 10**400, float("nan"), float("inf")),
    *([], [1], [[1, 2]], {}, {"x": 1}),
)


def changes(content: Any) -> Iterator[tuple[str, Any]]:
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


OTHER_TENSORS: tuple[Callable[[torch.Tensor], Any], ...] = (
    lambda old: old.reshape(-1)[:0],
    lambda old: old[None],
    lambda old: old.to(torch.complex64),
    lambda old: old.to(torch.int64) if old.is_floating_point() else old.to(torch.float32),
    lambda old: torch.full_like(old, float("nan") if old.is_floating_point() else 1) + 1,
    lambda old: [1.0],
    lambda old: "x",
)
PICKLED_TENSORS: tuple[Callable[[torch.Tensor], Any], ...] = (
    *OTHER_TENSORS,
    lambda old: torch.zeros(1, dtype=old.dtype).expand(10**12),
    lambda old: old.to("meta"),
    lambda _: torch.empty(10**7, 10**5, device="meta"),
)


def changed_leaves(content: Any, *, pickled: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the name of a change, and a content of a file with one value changed.

    A file that is `pickled` may hold tensors that claim more than they have.

    Each value inside dictionaries, lists and tuples becomes another, of another type or shape, or
    is left out.
    """
    for place in _inside(content):
        old = content
        for key in place:
            old = old[key]
        tensor = isinstance(old, torch.Tensor)
        others = (
            (PICKLED_TENSORS if pickled else OTHER_TENSORS)
            if tensor
            else (None, "\0\x1b" * 600, -7, [], {}, 10**400, torch.ones(2))
        )
        for number, value in enumerate((..., *others)):
            new = value(old) if callable(value) else value
            if new is not ... and _same(new, old):
                continue
            yield f"{'/'.join(map(str, place))}: change {number}", _with(content, place, new)


def _same(new: Any, old: Any) -> bool:
    if not isinstance(new, torch.Tensor) or not isinstance(old, torch.Tensor):
        return type(new) is type(old) and bool(new == old)
    alike = new.dtype == old.dtype and new.shape == old.shape and new.device == old.device
    return alike and torch.equal(new, old)


def _inside(content: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    holds = isinstance(content, dict | list | tuple)
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if holds else ()
    for key, value in pairs:
        yield (*above, key)
        yield from _inside(value, (*above, key))


def _with(content: Any, place: tuple[Any, ...], value: Any) -> Any:
    """Return a content with one value another, or left out for `...`; the rest is shared."""
    key, *deeper = place
    if deeper:
        value = _with(content[key], tuple(deeper), value)
    if isinstance(content, dict):
        rest = {name: each for name, each in content.items() if value is not ... or name != key}
        return rest if value is ... else rest | {key: value}
    items = [*content[:key], *([] if value is ... else [value]), *content[key + 1 :]]
    return type(content)(items) if type(content) in (list, tuple) else tuple(items)
