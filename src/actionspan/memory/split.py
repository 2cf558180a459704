"""The execution `split`: kept rows with a graph, the others without one (paper 004, 3.2.1)."""

from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn

from actionspan.memory.estimator import Estimator
from actionspan.memory.frames import Frames, all_rows, encode, encode_all
from actionspan.memory.nested import encode_kept, parts_of
from actionspan.memory.pieces import Encode, join, others, without_graph
from actionspan.memory.weighting import weigh

WithGraph = Callable[[Encode, Tensor], Tensor]  # how the kept rows are run


def one_batch(run: Encode, rows: Tensor) -> Tensor:
    """Run the kept rows in one batch."""
    return run(rows)


def split(
    encoder: nn.Module,
    frames: Frames,
    estimator: Estimator,
    piece: int,
    generator: Generator | None,
    *,
    with_graph: WithGraph = one_batch,
    known: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Return the features (T, …) of a video, of which the kept rows have a graph.

    Args:
        encoder: What is run. Where all rows are kept, in one batch, it is run plainly.
        frames: The rows of the video.
        estimator: Which rows are kept. Where it looks at features, all rows are run for that first.
        piece: Rows that are run at a time without a graph, at most.
        generator: Where random numbers come from; None: torch's global generator.
        with_graph: How the kept rows are run.
        known: Returns the features of dropped rows, like the features of kept ones that it is given
            too; by default dropped rows are run.
    """
    rows = all_rows(frames)

    def plain(some: Tensor) -> list[Tensor]:
        return without_graph(lambda few: encode(encoder, frames, few), some, len(rows), piece)

    first = plain(rows) if estimator.by_feature else []
    levels = estimator.draw(len(rows), generator, torch.cat(first) if first else None)
    if len(levels[0].rows) == len(rows) and with_graph is one_batch:
        return encode_all(encoder, frames)
    top, parts = levels[-1], parts_of(encoder, levels)
    kept = with_graph(lambda some: encode_kept(parts, levels, frames, some, piece), top.rows)
    dropped = others(top.rows, len(rows))
    if known is not None:
        rest = [known(dropped, kept)] if len(dropped) else []
    elif first:
        rest = [torch.cat(first)[dropped]] if len(dropped) else []
    else:
        rest = plain(dropped)
    return join(top.rows, weigh(kept, top.weights), dropped, rest)
