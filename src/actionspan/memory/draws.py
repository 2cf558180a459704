"""Whether an encoder draws random numbers.

The states of the generators do not tell: they are the whole process's, and another thread may draw
from them at the same time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

_PROBABILITIES = ("p", "dropout", "dropout_p")
_SWITCHES = ("train", "training")

_Settings = tuple[bool | int | float, ...]
_known: WeakKeyDictionary[nn.Module, tuple[_Settings, bool]] = WeakKeyDictionary()


class Draws:
    """What a block of `drawing` found."""

    random = False


@contextmanager
def drawing(encoder: nn.Module) -> Iterator[Draws]:
    """Find out whether a run of an encoder in the block draws from torch's global generators.

    The operators of the block are looked at where this encoder was not run yet, or some number or
    flag of its modules is another one than in its last run (a training mode, a probability).

    Yields:
        The answer, once the block has ended.
    """
    settings = _settings(encoder)
    before, random = _known.get(encoder, ((), False))
    found = Draws()
    if before == settings:
        yield found
        found.random = random
        return
    with _Watch(found):
        yield found
    _known[encoder] = settings, found.random


def _settings(encoder: nn.Module) -> _Settings:
    """Return all numbers and flags that are attributes of an encoder's modules."""
    plain = (bool, int, float)
    return tuple(
        value
        for module in encoder.modules()
        for value in vars(module).values()
        if type(value) in plain
    )


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operators that draw, of this thread alone."""

    def __init__(self, found: Draws) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operator, and look whether it draws."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags and _draws(func, args, kwargs):
            self._found.random = True
        return func(*args, **kwargs)


def _draws(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether an operator that may draw does: attention may drop nothing, for example."""
    names = [argument.name for argument in func._schema.arguments]
    given = {a.name: a.default_value for a in func._schema.arguments}
    given |= dict(zip(names, args, strict=False)) | kwargs
    never = any(given.get(name) == 0 for name in _PROBABILITIES if _is_number(given.get(name)))
    off = any(given.get(name) is False for name in _SWITCHES)
    return not (never or off or given.get("generator") is not None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
