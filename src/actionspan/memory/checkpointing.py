"""Gradient checkpointing in pieces: rows are run again in backward, whatever is kept."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from actionspan.memory.pieces import Encode, balanced


def checkpointed(encoder: nn.Module, run: Encode, rows: Tensor, piece: int) -> Tensor:
    """Return the features of rows, whose graph is made again in backward, a piece at a time.

    Not reentrant: a hook of a parameter is then called once a step, not once a piece. The frames
    are taken again in backward too, so that no copy of them is saved.

    Args:
        encoder: What `run` runs.
        run: Runs rows.
        rows: (n,) that are run.
        piece: How many at a time, at most.
    """
    first = next(encoder.parameters(), None)
    # From an argument `checkpoint` learns whose random numbers and autocast it has to restore.
    there = torch.empty(0, device=None if first is None else first.device)
    return torch.cat(
        [
            checkpoint(lambda some, _: run(some), each, there, use_reentrant=False)
            for each in balanced(rows, piece)
        ]
    )
