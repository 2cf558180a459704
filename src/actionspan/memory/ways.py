"""Ways to train an encoder on long videos, behind one call, to compare SBP with."""

from collections.abc import Sequence
from functools import partial
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn

from actionspan.memory.bank import FeatureBank
from actionspan.memory.checkpointing import checkpointed
from actionspan.memory.estimator import Estimator, estimator_of
from actionspan.memory.frames import Frames, all_rows, encode, encode_all
from actionspan.memory.norms import refuse_batch_statistics
from actionspan.memory.sampling import Sampler
from actionspan.memory.split import split
from actionspan.memory.stochastic import (
    Execution,
    StochasticBackward,
    checked_piece,
    needs_gradient,
    plain_features,
)
from actionspan.memory.weighting import GradientWeight

Way = Literal["sbp", "full", "frozen", "frame_dropout", "checkpoint", "bank", "sbp_checkpoint"]


def make_way(
    way: Way,
    encoder: nn.Module,
    keep_ratio: float | Sequence[float] = 0.25,
    *,
    sampler: Sampler = "uniform_random",
    gradient_weight: GradientWeight = "even",
    execution: Execution = "replay",
    piece: int = 16,
) -> nn.Module:
    """Return a module called as `way(frames, generator=…, key=…)`, which gives features (T, …).

    | way | forward | gradient of the encoder |
    |---|---|---|
    | `sbp` | exact | estimated from kept rows |
    | `full` | exact, to the bit | exact |
    | `frozen` | exact | none |
    | `frame_dropout` | of kept rows, the others interpolated | exact, for this forward |
    | `checkpoint` | exact | exact |
    | `bank` | of kept rows, the others from earlier steps | estimated from kept rows |
    | `sbp_checkpoint` | exact | estimated from kept rows, which are checkpointed |

    Without a gradient (`torch.no_grad`) all ways run all rows.

    Args:
        way: One of these names.
        encoder: Called with n rows, gives n features; the module keeps it as `encoder`.
        keep_ratio: See `StochasticBackward`; not for `full`, `frozen` and `checkpoint`.
        sampler: Where rows are kept; by gradients with `sbp` alone, by features not with
            `frame_dropout` (whose dropped rows have none) and `bank` (whose are old).
        gradient_weight: Of kept rows; not for `frame_dropout`, which has no dropped gradients.
        execution: Of `sbp`.
        piece: Rows at a time, at most, without a graph or run again in backward.

    Raises:
        ValueError: A value is not allowed.
    """
    if way not in get_args(Way):
        raise ValueError(f"way is {way!r}; it must be one of {', '.join(get_args(Way))}")
    if way == "sbp":
        return StochasticBackward(
            encoder,
            keep_ratio,
            sampler=sampler,
            gradient_weight=gradient_weight,
            execution=execution,
            piece=piece,
        )
    checked_piece(piece)
    if way == "full":
        return _Full(encoder)
    if way == "frozen":
        return _Frozen(encoder, piece)
    if way == "checkpoint":
        return _Checkpoint(encoder, piece)
    estimator = estimator_of(encoder, keep_ratio, sampler, gradient_weight)
    refused = {"frame_dropout": estimator.by_feature, "bank": estimator.by_feature}
    if estimator.by_gradient or refused.get(way):
        raise ValueError(f"sampler is {sampler!r}, which the way {way} cannot use")
    if way == "frame_dropout":
        if len(estimator.ratios) > 1:
            raise ValueError(f"keep_ratio is {keep_ratio}; frame_dropout takes one number")
        return _FrameDropout(encoder, estimator, piece)
    if way == "bank":
        return FeatureBank(encoder, estimator, piece)
    return _SplitCheckpoint(encoder, estimator, piece)


class _Full(nn.Module):
    """Plain training of all rows."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(
        self, frames: Frames, *, generator: Generator | None = None, key: str = ""
    ) -> Tensor:
        all_rows(frames)
        return encode_all(self.encoder, frames)


class _Frozen(nn.Module):
    """Features of all rows, without a graph."""

    def __init__(self, encoder: nn.Module, piece: int) -> None:
        super().__init__()
        self.encoder, self.piece = encoder, piece

    def forward(
        self, frames: Frames, *, generator: Generator | None = None, key: str = ""
    ) -> Tensor:
        refuse_batch_statistics(self.encoder)
        return plain_features(self.encoder, frames, all_rows(frames), self.piece)


class _Checkpoint(nn.Module):
    """Full training, each piece of rows run again in backward."""

    def __init__(self, encoder: nn.Module, piece: int) -> None:
        super().__init__()
        self.encoder, self.piece = encoder, piece

    def forward(
        self, frames: Frames, *, generator: Generator | None = None, key: str = ""
    ) -> Tensor:
        refuse_batch_statistics(self.encoder)
        rows = all_rows(frames)
        return checkpointed(self.encoder, partial(encode, self.encoder, frames), rows, self.piece)


class _SplitCheckpoint(nn.Module):
    """Split, the kept rows checkpointed in pieces."""

    def __init__(self, encoder: nn.Module, estimator: Estimator, piece: int) -> None:
        super().__init__()
        self.encoder, self.estimator, self.piece = encoder, estimator, piece

    def forward(
        self, frames: Frames, *, generator: Generator | None = None, key: str = ""
    ) -> Tensor:
        refuse_batch_statistics(self.encoder)
        if not needs_gradient(self.encoder, frames):
            return plain_features(self.encoder, frames, all_rows(frames), self.piece)
        return split(
            self.encoder,
            frames,
            self.estimator,
            self.piece,
            generator,
            with_graph=partial(checkpointed, self.encoder, piece=self.piece),
        )


class _FrameDropout(nn.Module):
    """Kept rows alone are run, as if there were no others; gaps are filled on straight lines.

    That is what a rescaling of linearly interpolated snippets sees of the kept ones. Before the
    first and after the last kept row, features stay the same.
    """

    def __init__(self, encoder: nn.Module, estimator: Estimator, piece: int) -> None:
        super().__init__()
        self.encoder, self.estimator, self.piece = encoder, estimator, piece

    def forward(
        self, frames: Frames, *, generator: Generator | None = None, key: str = ""
    ) -> Tensor:
        refuse_batch_statistics(self.encoder)
        rows = all_rows(frames)
        if not torch.is_grad_enabled():
            return plain_features(self.encoder, frames, rows, self.piece)
        (level,) = self.estimator.draw(len(rows), generator)
        if len(level.rows) == len(rows):
            return encode_all(self.encoder, frames)
        kept = encode(self.encoder, frames, level.rows)  # (k, …)
        return _interpolated(kept, level.rows, len(rows))


def _interpolated(kept: Tensor, rows: Tensor, count: int) -> Tensor:
    """Return (count, …) features on straight lines between `kept` (k, …), which are at `rows`."""
    places = torch.arange(count)
    after = torch.searchsorted(rows, places).clamp(max=len(rows) - 1)  # (count,)
    before = (torch.searchsorted(rows, places, right=True) - 1).clamp(min=0)
    gaps = (rows[after] - rows[before]).clamp(min=1)
    parts = ((places - rows[before]).double() / gaps).clamp(0, 1).to(kept)
    parts = parts.reshape(-1, *[1] * (kept.ndim - 1))
    return torch.lerp(kept[before.to(kept.device)], kept[after.to(kept.device)], parts)
