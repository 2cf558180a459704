"""The kept rows run with a graph, in each part of an encoder those that are kept there."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from actionspan.memory.estimator import Level, checked_sequence
from actionspan.memory.frames import Frames, checked, encode
from actionspan.memory.pieces import join, without_graph
from actionspan.memory.weighting import weigh


def parts_of(encoder: nn.Module, levels: Sequence[Level]) -> tuple[nn.Module, ...]:
    """Return the parts of an encoder: those of a sequence where there are levels, or itself.

    Raises:
        ValueError: The encoder does more than to run its parts.
    """
    # not `children()`, which leaves out a module that comes a second time
    return tuple(checked_sequence(encoder)) if len(levels) > 1 else (encoder,)


def encode_kept(
    parts: Sequence[nn.Module], levels: Sequence[Level], frames: Frames, rows: Tensor, piece: int
) -> Tensor:
    """Return features of rows that are kept in the last part, with a graph; they go in one batch.

    In the parts before it, rows that are not kept there are run without a graph.

    Args:
        parts: The parts of the encoder, first to last.
        levels: What is kept in each; the weights of the last are not applied here.
        frames: The rows of the video.
        rows: (n,) of them, sorted, all in the last level.
        piece: Rows that are run at a time without a graph, at most.
    """
    *before, part = parts
    if not before:
        return encode(part, frames, rows)
    below = levels[-2]
    here = torch.isin(rows, below.rows)
    inner = rows[here]
    features = None
    if len(inner):
        features = encode_kept(before, levels[:-1], frames, inner, piece)
        features = weigh(features, below.weights_of(inner))
    # Positions among `rows`, as only these are here.
    rest = without_graph(
        lambda some: encode(nn.Sequential(*before), frames, some), rows[~here], len(frames), piece
    )
    places = here.nonzero()[:, 0], (~here).nonzero()[:, 0]
    return checked(part(join(places[0], features, places[1], rest)), len(rows))
