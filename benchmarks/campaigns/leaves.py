"""Values inside dictionaries and lists, and what may stand in their place."""

import contextlib
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import torch


class Leaf(NamedTuple):
    """A value of a model: what holds it, and under which key."""

    holder: Any
    key: Any


def leaves_of(content: Any) -> Iterator[Leaf]:
    """Yield the values inside a content, containers too."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in list(pairs):
        yield Leaf(content, key)
        if isinstance(value, dict | list):
            yield from leaves_of(value)


def change(leaf: Leaf, random: Random, *more: Any) -> None:
    """Change a value, also to one of `more`, or leave it out."""
    holder, key = leaf
    old = holder[key]
    if random.random() < 0.15:
        del holder[key]
    elif isinstance(old, torch.Tensor) and random.random() < 0.8:
        with contextlib.suppress(RuntimeError):  # not every change fits every tensor
            holder[key] = random.choice(_TENSORS)(old, random)
    else:
        holder[key] = random.choice([*VALUES, *more, *_like(old)])


def _deep(depth: int) -> Any:
    inner: Any = 1
    for _ in range(depth):
        inner = [inner]
    return inner


VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 1000, 10**6, 10**12, 2**63, 10**400, 0.0, 0.5, -0.5),
    *(1e-9, 1e-300, 1e30, 1e300, math.nan, math.inf, -math.inf, "", "x", "\0", "a\n\x1b[2J", "é"),
    *("1", "9" * 5000, "x" * 100_000, "../../etc/passwd", "IMAGENET1K_V1", "DEFAULT", "packaged"),
    *("https://example.org/x.pt", "resnet18", "i3d", "stream", "cnn4", "windows"),
    *("cuda", [], {}, [1], [0.5, 0.1], ["a"] * 3, {"a": 1}, _deep(40), [0] * 1000, "[" * 100_000),
)


def _like(old: Any) -> list[Any]:
    """Return neighbours of a number."""
    if isinstance(old, int | float) and not isinstance(old, bool):
        return [old + 1, old - 1, old * 2, -old, old * 1000, str(old), [old], old // 3]
    return []


def _filled(value: float) -> Callable[[torch.Tensor, Random], Any]:
    def fill(old: torch.Tensor, random: Random) -> Any:
        new = old.clone()
        if new.is_floating_point() and new.numel():
            new.view(-1)[random.randrange(new.numel())] = value
        return new

    return fill


def _as(kind: torch.dtype) -> Callable[[torch.Tensor, Random], Any]:
    return lambda old, _: old.to(torch.float32).to(kind)


_TENSORS: tuple[Callable[[torch.Tensor, Random], Any], ...] = (
    *(_filled(value) for value in (math.nan, math.inf, 1e30, -1e30, 1e-40, -1.0, 0.0)),
    *(_as(kind) for kind in (torch.float64, torch.float16, torch.bfloat16, torch.int64)),
    *(_as(kind) for kind in (torch.complex64, torch.bool, torch.float8_e4m3fn, torch.uint8)),
    lambda old, _: old * (1e20 if old.is_floating_point() else 10**6),
    lambda old, _: -old.to(torch.float32),
    lambda old, _: torch.zeros_like(old),
    lambda old, _: old[None],
    lambda old, _: old.reshape(-1),
    lambda old, _: old.transpose(0, -1) if old.ndim else old,
    lambda old, _: old.reshape(-1)[:0],
    lambda old, _: old[:0] if old.ndim else old[None][:0],
    lambda old, _: torch.cat([old, old]) if old.ndim else old[None].repeat(2),
    lambda old, _: old[..., :-1] if old.ndim else old,
    lambda old, _: torch.nn.Parameter(old.to(torch.float32)),
    lambda old, random: old.reshape(-1)[:1].expand(random.choice([10**6, 10**10, 10**13])),
    lambda old, _: torch.zeros(1, dtype=old.dtype).expand(old.shape),
    lambda old, _: torch.zeros(1, dtype=old.dtype).expand(10**6, *old.shape),
    lambda old, _: (
        torch.zeros(100_000, dtype=old.dtype)[7 : 7 + old.numel()].reshape(old.shape)
        if old.numel() < 90_000
        else old
    ),
    lambda old, _: old.to("meta"),
    lambda old, _: torch.empty(10**7, 10**5, device="meta"),
    lambda old, _: old.to(torch.float32).to_sparse(),
    lambda *_: torch.sparse_coo_tensor(torch.zeros(1, 1).long(), torch.ones(1), (10**12,)),
    lambda old, _: torch.quantize_per_tensor(old.to(torch.float32), 0.1, 0, torch.quint8),
    lambda old, _: torch._neg_view(old.to(torch.float32)),
    lambda old, random: (
        torch.full_like(old, random.choice([-1, 3, 10**6, 10**9]))
        if not old.is_floating_point() and old.dtype != torch.bool and old.dtype != torch.uint8
        else old
    ),
)
