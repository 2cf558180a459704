"""Which nodes of a graph model keep their backward path, and how they are taken and put back."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from actionspan.memory.sampling import Sampler, kept_count, sample_rows


def layer_rows(
    sampler: Sampler,
    count: int,
    keep_ratios: Sequence[float],
    generator: torch.Generator | None = None,
    *,
    grid: tuple[int, int, int] | None = None,
) -> list[Tensor]:
    """Draw rows for each layer, bottom first: those of a layer are among those of the next.

    So no gradient arrives at a node that has no graph. Equal ratios give the same rows.

    Args:
        sampler: `checkerboard` needs `grid`, and equal ratios.
        count: N, the nodes or the frames.
        keep_ratios: Of each layer, none smaller than the one before.
        generator: Of the draws.
        grid: (t, h, w) of the nodes.

    Returns:
        (k,) int64 rows of each layer, sorted.

    Raises:
        ValueError: A ratio is smaller than the one of the layer below.
    """
    if list(keep_ratios) != sorted(keep_ratios):
        raise ValueError(f"keep ratios {list(keep_ratios)}: from the bottom up none may be smaller")
    if sampler == "checkerboard" and len(set(keep_ratios)) > 1:
        raise ValueError("keep ratios by layer: checkerboard has the same nodes in all layers")
    drawn: list[Tensor] = []  # top first
    for ratio in reversed(keep_ratios):
        wanted = kept_count(count, ratio)
        if not drawn:
            rows = sample_rows(sampler, count, ratio, generator, grid=grid).rows
        elif wanted == len(drawn[-1]):
            rows = drawn[-1]
        else:
            among = len(drawn[-1])
            rows = drawn[-1][sample_rows(sampler, among, wanted / among, generator).rows]
        drawn.append(rows)
    return drawn[::-1]


class NodeRows(NamedTuple):
    """The nodes of (B, N, …) in two parts, kept ones and dropped ones, and the way back.

    Each is (k,) for rows of all examples alike, or (B, k) for rows of each its own.
    """

    kept: Tensor
    dropped: Tensor
    place: Tensor
    """Of each of the N nodes in the sequence of kept nodes followed by dropped ones."""


def checked_rows(kept: Tensor, count: int) -> Tensor:
    """Return rows of nodes.

    Args:
        kept: (k,) or (B, k).
        count: N, how many nodes there are.

    Raises:
        ValueError: They are of another type or shape, none, not from 0 to N - 1, or one is there
            twice.
    """
    if kept.dtype != torch.int64 or kept.dim() not in (1, 2) or not kept.numel():
        raise ValueError(
            f"rows of nodes: {kept.dtype} of shape {tuple(kept.shape)}; they must be int64, (k,) "
            "or (B, k), at least 1"
        )
    if kept.is_meta:
        return kept
    ordered = kept.sort(dim=-1).values
    if int(ordered.min()) < 0 or int(ordered.max()) >= count:
        raise ValueError(
            f"rows of nodes from {int(ordered.min())} to {int(ordered.max())}; they must be from 0 "
            f"to {count - 1}"
        )
    if bool((ordered.diff(dim=-1) == 0).any()):
        raise ValueError("rows of nodes: one is there twice; they must be distinct")
    return kept


def check_nested(below: Tensor, above: Tensor) -> None:
    """Check that the rows of a layer, (k,) or (B, k), are among those of the layer above it.

    Raises:
        ValueError: They are not.
    """
    among = (below.unsqueeze(-1) == above.to(below.device).unsqueeze(-2)).any(dim=-1)
    if not bool(among.all()):
        raise ValueError("rows of nodes: those of a layer must be among those of the next layer")


def divide_nodes(kept: Tensor, count: int) -> NodeRows:
    """Divide `count` nodes by the rows that are kept.

    No number of rows depends on a value, so that it works on the `meta` device too.

    Args:
        kept: (k,) int64, or (B, k) with rows of each example; no row twice.
        count: N, how many nodes there are.
    """
    marks = torch.ones((*kept.shape[:-1], count), dtype=torch.int64, device=kept.device)
    order = marks.scatter(-1, kept, 0).argsort(dim=-1, stable=True)  # kept nodes come first
    size = kept.shape[-1]
    return NodeRows(order[..., :size], order[..., size:], order.argsort(dim=-1))


def take(nodes: Tensor, rows: Tensor) -> Tensor:
    """Return the (B, k, …) nodes in these rows of (B, N, …); backward saves the rows alone."""
    if rows.dim() == 1:
        return nodes.index_select(1, rows)
    # not `gather`, which saves a row for each number of a node
    first = torch.arange(len(rows), device=rows.device).unsqueeze(1) * nodes.shape[1]
    taken = nodes.flatten(0, 1).index_select(0, (rows + first).flatten())
    return taken.view(*rows.shape, *nodes.shape[2:])


def put_together(kept: Tensor, dropped: Tensor, rows: NodeRows) -> Tensor:
    """Return the (B, N, …) nodes that `take` divided."""
    return take(torch.cat([kept, dropped], dim=1), rows.place)


class _KeepGradient(torch.autograd.Function):
    """The identity, whose gradient is zero outside the kept nodes."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, kept: Tensor) -> Tensor:
        """Return (B, N, D) as it is; the rows are saved, and nothing of the nodes."""
        ctx.save_for_backward(kept)
        return nodes.view_as(nodes)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the gradient with zeros in place of the dropped nodes'."""
        (gradient,), (kept,) = gradients, ctx.saved_tensors
        count = gradient.shape[1]
        outside = torch.ones((*kept.shape[:-1], count), dtype=torch.bool, device=kept.device)
        return gradient.masked_fill(outside.scatter(-1, kept, False).unsqueeze(-1), 0), None


def keep_gradient(nodes: Tensor, kept: Tensor) -> Tensor:
    """Return (B, N, D) nodes as they are; in backward, dropped ones get the gradient zero.

    Args:
        nodes: (B, N, D).
        kept: (k,) or (B, k), the rows that keep theirs.
    """
    passed: Tensor = _KeepGradient.apply(nodes, kept)  # type: ignore[no-untyped-call]
    return passed
