"""Rows in pieces: some are run without a graph, and all are put together."""

from collections.abc import Callable

import torch
from torch import Tensor

Encode = Callable[[Tensor], Tensor]  # rows (n,) to their features (n, …)


def balanced(rows: Tensor, piece: int) -> tuple[Tensor, ...]:
    """Divide rows into as few pieces of at most `piece` rows as can be, of nearly equal sizes."""
    return rows.tensor_split(-(-len(rows) // piece)) if len(rows) else ()


def without_graph(encode: Encode, rows: Tensor, count: int, piece: int) -> list[Tensor]:
    """Return the features of rows in balanced pieces, run without a graph.

    A batch of one row may take another way through a library than a larger one, and give other
    bits. So a piece has one row only where it must: `piece` is 1, or the video has one row. Else a
    neighbour is run along with a single row.

    Args:
        encode: Runs rows.
        rows: (n,) of a video.
        count: Rows of the video, T.
        piece: Rows at a time, at most.
    """
    with torch.no_grad():
        return [_run(encode, each, count, piece) for each in balanced(rows, piece)]


def _run(encode: Encode, rows: Tensor, count: int, piece: int) -> Tensor:
    if len(rows) > 1 or min(count, piece) == 1:
        return encode(rows)
    first = (rows - 1).clamp(min=0)  # sorted, as readers of files expect
    place = int(rows - first)
    return encode(torch.cat([first, first + 1]))[place : place + 1]


def join(rows: Tensor, features: Tensor | None, rest_rows: Tensor, rest: list[Tensor]) -> Tensor:
    """Put features of two sets of rows, which are all rows from 0 together, in order.

    Args:
        rows: (k,) sorted numbers of the rows of `features`.
        features: (k, …), which may have a graph; None: k is 0.
        rest_rows: (n,) sorted numbers of the other rows.
        rest: Their features, pieces of (n, …) in order, without a graph; empty: n is 0.
    """
    if features is None:
        return torch.cat(rest)
    if not rest:
        return features
    others = torch.cat(rest)
    base = others.new_empty((len(rows) + len(others), *others.shape[1:]))
    base.index_copy_(0, rest_rows.to(base.device), others)
    return base.index_copy(0, rows.to(base.device), features)


def others(rows: Tensor, count: int) -> Tensor:
    """Return the numbers from 0 to `count` - 1 that are not in `rows`, sorted."""
    free = torch.ones(count, dtype=torch.bool)
    free[rows] = False
    return free.nonzero()[:, 0]
