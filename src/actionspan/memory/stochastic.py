"""Stochastic backpropagation: an encoder whose backward path is kept for some rows (paper 004)."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn

from actionspan.memory.estimator import estimator_of
from actionspan.memory.frames import Frames, all_rows, encode, encode_all
from actionspan.memory.norms import refuse_batch_statistics
from actionspan.memory.pieces import without_graph
from actionspan.memory.replay import replay
from actionspan.memory.sampling import Sampler
from actionspan.memory.split import split
from actionspan.memory.weighting import GradientWeight

Execution = Literal["split", "replay"]


class StochasticBackward(nn.Module):
    """The features of a video, with the gradient of the encoder estimated from some of its rows.

    The forward pass, and the gradients of what comes after the encoder, are those of full training
    whatever is kept. Two executions give the same gradient to rounding:

    - `split`: one forward pass, of which the kept rows have a graph in one batch. Saved bytes grow
      with the kept rows. With all rows kept it is plain `encoder(frames)`, to the bit.
    - `replay`: a forward pass without a graph; the kept rows are run again in backward, in pieces
      of at most `piece` rows. Saved bytes are those of one piece whatever is kept, and features
      never depend on what is kept, to the bit, unless the encoder draws random numbers. With all
      rows kept it is the full gradient in bounded memory.

    Where no gradient is asked for (`torch.no_grad`, a frozen encoder) nothing is drawn, and rows
    are run in pieces of at most `piece` rows.
    """

    def __init__(
        self,
        encoder: nn.Module,
        keep_ratio: float | Sequence[float] = 0.25,
        *,
        sampler: Sampler = "uniform_random",
        gradient_weight: GradientWeight = "even",
        execution: Execution = "replay",
        piece: int = 16,
    ) -> None:
        """Wrap an encoder.

        Args:
            encoder: Called with n rows, gives n features. Norms must not use batch statistics.
            keep_ratio: The part of the rows that is kept, above 0 and at most 1; or a list, one for
                each child of an `nn.Sequential`, which may not fall. Each part's rows are then
                drawn among those of the part after it.
            sampler: See `sample_rows`; `diverse_gradient` and `importance` need `replay`. The
                tokens of `checkerboard` are the rows: every m-th one, from a random one.
            gradient_weight: See `gradient_weights`.
            execution: `split` or `replay`.
            piece: Rows are run in pieces of at most `piece` rows: without a graph, and again in
                `replay`.

        Raises:
            ValueError: A value is not allowed.
        """
        super().__init__()
        self.encoder = encoder
        self.estimator = estimator_of(encoder, keep_ratio, sampler, gradient_weight)
        if execution not in get_args(Execution):
            raise ValueError(f"execution is {execution!r}; it must be split or replay")
        if execution == "split" and self.estimator.by_gradient:
            raise ValueError(f"sampler is {sampler!r}, which needs execution replay, not split")
        self.execution, self.piece = execution, checked_piece(piece)

    def forward(
        self,
        frames: Frames,
        *,
        generator: Generator | None = None,
        key: str = "",  # noqa: ARG002  the same call as the other ways'
    ) -> Tensor:
        """Return the features of all rows.

        Args:
            frames: The rows of one video, T of them.
            generator: Where random numbers come from; None: torch's global generator.
            key: Not used.

        Returns:
            (T, …) what the encoder gives for the rows.

        Raises:
            ValueError: There are no rows, or a norm uses batch statistics, or the encoder draws
                random numbers where rows are drawn by their gradients.
        """
        refuse_batch_statistics(self.encoder)
        rows, whole = all_rows(frames), min(self.estimator.ratios) == 1
        if not needs_gradient(self.encoder, frames):
            if whole and self.execution == "split":
                return encode_all(self.encoder, frames)
            return plain_features(self.encoder, frames, rows, self.piece)
        run = split if self.execution == "split" else replay
        return run(self.encoder, frames, self.estimator, self.piece, generator)


def plain_features(encoder: nn.Module, frames: Frames, rows: Tensor, piece: int) -> Tensor:
    """Return the features of rows, run in pieces without a graph."""
    return torch.cat(
        without_graph(lambda some: encode(encoder, frames, some), rows, len(frames), piece)
    )


def needs_gradient(encoder: nn.Module, frames: Frames) -> bool:
    """Return whether a gradient can be asked for, of the encoder or of frames that are a tensor."""
    learns = isinstance(frames, Tensor) and frames.requires_grad
    return torch.is_grad_enabled() and (
        learns or any(p.requires_grad for p in encoder.parameters())
    )


def checked_piece(piece: int) -> int:
    """Return the number of rows of a piece.

    Raises:
        ValueError: It is below 1, or no whole number.
    """
    if not isinstance(piece, int) or piece < 1:
        raise ValueError(f"piece is {piece}; it must be at least 1 row, a whole number")
    return piece
