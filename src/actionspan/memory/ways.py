"""Stochastic backpropagation (paper 004), and the ways to train that it is compared with.

All are called alike: rows of a video in, features (T, …) out.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Generator, Tensor, nn
from torch.utils.checkpoint import checkpoint

from actionspan.memory import encoding
from actionspan.memory.encoding import Encode, Frames
from actionspan.memory.estimator import Estimator, GradientWeight, estimator_of
from actionspan.memory.executions import replay, split
from actionspan.memory.sampling import Sampler

Execution = Literal["split", "replay"]
Way = Literal["sbp", "full", "frozen", "frame_dropout", "checkpoint", "bank", "sbp_checkpoint"]


class StochasticBackward(nn.Module):
    """The features of a video, with the gradient of the encoder estimated from some of its rows.

    The forward pass, and the gradients above the encoder, are as in full training, whichever
    rows are kept. Two executions give the same gradient to rounding:

    - `split`: one forward pass, of which the kept rows have a graph in one batch. Saved bytes grow
      with the kept rows. With all rows kept it is plain `encoder(frames)`, to the bit.
    - `replay`: a forward pass without a graph; the kept rows are run again in backward, in pieces
      of at most `piece` rows. Saved bytes are the bytes of one piece however many rows are kept,
      and features never depend on the kept rows, to the bit, unless the encoder draws random
      numbers. With all rows kept it is the full gradient in bounded memory.

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
                drawn among the drawn rows of the part after it.
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
        self.execution, self.piece = execution, piece
        _check_piece(piece)

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
            (T, …) the encoder's features of the rows.

        Raises:
            ValueError: No rows are given, or a norm uses batch statistics, or the encoder draws
                random numbers where rows are drawn by their gradients.
        """
        encoding.refuse_batch_statistics(self.encoder)
        rows = encoding.all_rows(frames)
        if not _needs_gradient(self.encoder, frames):
            if min(self.estimator.ratios) == 1 and self.execution == "split":
                return encoding.encode_all(self.encoder, frames)
            return encoding.encode_plain(self.encoder, frames, rows, self.piece)
        run = split if self.execution == "split" else replay
        return run(self.encoder, frames, self.estimator, self.piece, generator)


def _needs_gradient(encoder: nn.Module, frames: Frames) -> bool:
    """Return whether a gradient can be asked for, of the encoder or of frames that are a tensor."""
    learns = isinstance(frames, Tensor) and frames.requires_grad
    return torch.is_grad_enabled() and (
        learns or any(p.requires_grad for p in encoder.parameters())
    )


def _check_piece(piece: int) -> None:
    if not isinstance(piece, int) or piece < 1:
        raise ValueError(f"piece is {piece}; it must be at least 1 row, a whole number")


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
            `frame_dropout` (dropped rows have none) and `bank` (they are old).
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
    _check_piece(piece)
    if way in ("full", "frozen", "checkpoint"):
        return _Way(way, encoder, piece)
    estimator = estimator_of(encoder, keep_ratio, sampler, gradient_weight)
    if estimator.by_gradient or (estimator.by_feature and way != "sbp_checkpoint"):
        raise ValueError(f"sampler is {sampler!r}, which the way {way} cannot use")
    if way == "frame_dropout" and len(estimator.ratios) > 1:
        raise ValueError(f"keep_ratio is {keep_ratio}; frame_dropout takes one number")
    return (FeatureBank if way == "bank" else _Way)(way, encoder, piece, estimator)


class _Way(nn.Module):
    """A way that SBP is compared with: which rows are run, and which have a graph."""

    def __init__(
        self, way: Way, encoder: nn.Module, piece: int, estimator: Estimator | None = None
    ) -> None:
        super().__init__()
        self.way, self.encoder, self.piece = way, encoder, piece
        self.estimator = estimator  # of the ways that draw rows

    def forward(
        self, frames: Frames, *, generator: Generator | None = None, key: str = ""
    ) -> Tensor:
        if self.way == "full":  # its norms may use statistics of the batch
            encoding.all_rows(frames)
            return encoding.encode_all(self.encoder, frames)
        encoding.refuse_batch_statistics(self.encoder)
        if self.way == "checkpoint":
            run = partial(encoding.encode, self.encoder, frames)
            return self._checkpointed(run, encoding.all_rows(frames))
        dropout = self.way == "frame_dropout" and torch.is_grad_enabled()
        if dropout or (self.estimator is not None and _needs_gradient(self.encoder, frames)):
            return self._sampled(frames, generator, key)
        return encoding.encode_plain(self.encoder, frames, encoding.all_rows(frames), self.piece)

    def _sampled(
        self,
        frames: Frames,
        generator: Generator | None,
        key: str,  # noqa: ARG002  for the bank
    ) -> Tensor:
        """Return features of which the kept rows have a graph."""
        estimator = self.estimator
        assert estimator is not None
        if self.way == "frame_dropout":
            return _with_gaps(self.encoder, frames, estimator, generator)
        again = self._checkpointed  # the kept rows, in pieces
        return split(self.encoder, frames, estimator, self.piece, generator, with_graph=again)

    def _checkpointed(self, run: Encode, rows: Tensor) -> Tensor:
        """Return the features of rows; their graph is made again in backward, a piece at a time.

        Not reentrant: a hook of a parameter is then called once a step, not once a piece. The
        frames are taken again in backward too, so that no copy of them is saved.
        """
        first = next(self.encoder.parameters(), None)
        # `checkpoint` restores random numbers and autocast of the devices of its arguments.
        there = torch.empty(0, device=None if first is None else first.device)
        again = partial(checkpoint, lambda some, _: run(some), use_reentrant=False)
        pieces = encoding.balanced(rows, self.piece)
        return torch.cat([again(each, there) for each in pieces])


class FeatureBank(_Way):
    """Features of kept rows with a graph, and of the others from the bank (TALLFormer, section 3).

    When a video is met for the first time all its rows are run. After that its dropped rows are not
    run at all, and their features are from the step that last kept them: the forward pass differs
    from full training. Without a gradient (`torch.no_grad`) all rows are run, and the bank
    is neither read nor written. A video of a known key and another length is a ValueError.
    """

    def __init__(self, way: Way, encoder: nn.Module, piece: int, estimator: Estimator) -> None:
        super().__init__(way, encoder, piece, estimator)
        self._stored: dict[str, Tensor] = {}

    def _sampled(self, frames: Frames, generator: Generator | None, key: str) -> Tensor:
        count, stored = len(encoding.all_rows(frames)), self._stored.get(key)
        if stored is not None and len(stored) != count:
            raise ValueError(
                f"the video {key!r} has {count} rows, but the bank has {len(stored)} of this key"
            )

        def known(dropped: Tensor, kept: Tensor) -> Tensor:
            if stored is None:
                return encoding.encode_plain(self.encoder, frames, dropped, self.piece)
            return stored[dropped].to(kept)  # under autocast the type may be another one

        assert self.estimator is not None
        features = split(self.encoder, frames, self.estimator, self.piece, generator, known=known)
        # A copy in any case: the caller may change the features in place.
        host = "meta" if features.is_meta else "cpu"
        self._stored[key] = features.detach().to(host, copy=True)
        return features

    def state(self) -> dict[str, Any]:
        """Return a copy of the bank, (T, …) features by key, on the host."""
        return {"features": {key: each.clone() for key, each in self._stored.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a copy of a state."""
        self._stored = {key: each.clone() for key, each in state["features"].items()}


def _with_gaps(
    encoder: nn.Module, frames: Frames, estimator: Estimator, generator: Generator | None
) -> Tensor:
    """Return the features of kept rows, run as if there were no others, and between on lines.

    A rescaling of linearly interpolated snippets sees the kept ones in this way. Before the
    first and after the last kept row, features stay the same.
    """
    count = len(encoding.all_rows(frames))
    ((rows, _),) = estimator.draw(count, generator)
    if len(rows) == count:
        return encoding.encode_all(encoder, frames)
    kept = encoding.encode(encoder, frames, rows)  # (k, …)
    places = torch.arange(count)
    after = torch.searchsorted(rows, places).clamp(max=len(rows) - 1)  # (count,)
    before = (torch.searchsorted(rows, places, right=True) - 1).clamp(min=0)
    gaps = (rows[after] - rows[before]).clamp(min=1)
    parts = ((places - rows[before]).double() / gaps).clamp(0, 1).to(kept)
    parts = parts.reshape(-1, *[1] * (kept.ndim - 1))
    return torch.lerp(kept[before.to(kept.device)], kept[after.to(kept.device)], parts)
