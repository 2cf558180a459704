"""How an encoder is run on rows of a video: all or in pieces, with a graph and without."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from actionspan.errors import lacks_memory
from actionspan.memory.estimator import Level, checked_sequence, weigh


class Frames(Protocol):
    """The rows of a video, e.g. a tensor (T, …), or images that are decoded when asked for."""

    def __len__(self) -> int:
        """Return how many rows there are, T."""

    def __getitem__(self, rows: Tensor, /) -> Tensor | tuple[Tensor, ...]:
        """Return the rows (n,) int64: n rows, or a tuple, the inputs of several streams."""


def all_rows(frames: Frames) -> Tensor:
    """Return the numbers of all rows, (T,) int64.

    Raises:
        ValueError: There is none.
    """
    if len(frames) < 1:
        raise ValueError("the video has 0 rows; at least 1 is needed")
    return torch.arange(len(frames))


def inputs_of(frames: Frames, rows: Tensor) -> tuple[Tensor, ...]:
    """Return the arguments of an encoder for these rows."""
    inputs = frames[rows]
    return inputs if isinstance(inputs, tuple) else (inputs,)


def encode(encoder: nn.Module, frames: Frames, rows: Tensor) -> Tensor:
    """Return the features of rows (n,), (n, …).

    Raises:
        ValueError: The encoder takes no rows of this shape, or gives another number of rows.
    """
    return checked(_called(encoder, inputs_of(frames, rows)), len(rows))


def encode_all(encoder: nn.Module, frames: Frames) -> Tensor:
    """Return the result of plain `encoder(frames)`, to the bit; a tensor is not copied."""
    inputs = (frames,) if isinstance(frames, Tensor) else inputs_of(frames, all_rows(frames))
    return checked(_called(encoder, inputs), len(frames))


def _called(encoder: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    try:
        features: Tensor = encoder(*inputs)
    except RuntimeError as error:
        if lacks_memory(error):
            raise
        shapes = " and ".join(str(tuple(each.shape)) for each in inputs)
        line = str(error).partition("\n")[0]
        raise ValueError(f"the encoder does not take rows of shape {shapes}: {line}") from error
    return features


def checked(features: Tensor, count: int) -> Tensor:
    """Return features, one for each of `count` rows.

    Raises:
        ValueError: There are more or fewer, or they are not tensors.
    """
    if not isinstance(features, Tensor):
        raise ValueError(
            f"the encoder gave a {type(features).__name__}, not a tensor with a row of features "
            "for each row"
        )
    if features.ndim < 1 or len(features) != count:
        raise ValueError(
            f"the encoder gave features of shape {tuple(features.shape)} for {count} rows; "
            "the first dimension must be the rows"
        )
    return features


def refuse_batch_statistics(encoder: nn.Module) -> None:
    """Check that no norm of an encoder uses or collects statistics of its batch.

    The rows of a video are run in several batches, some of them twice.

    Raises:
        ValueError: A norm does.
    """
    for name, module in encoder.named_modules():
        batch = isinstance(module, _BatchNorm) and (module.training or module.running_mean is None)
        collects = (
            isinstance(module, _InstanceNorm) and module.training and module.track_running_stats
        )
        if batch or collects:
            raise ValueError(
                f"the encoder's norm {name or type(module).__name__!r} uses the statistics of a "
                "batch, but rows are run in pieces: freeze it (eval) or fold it into a convolution"
            )


Encode = Callable[[Tensor], Tensor]  # rows (n,) to their features (n, …)


def balanced(rows: Tensor, piece: int) -> tuple[Tensor, ...]:
    """Divide rows into as few pieces of at most `piece` rows as can be, of nearly equal sizes."""
    return rows.tensor_split(-(-len(rows) // piece)) if len(rows) else ()


def detached_features(encoder: nn.Module, frames: Frames, rows: Tensor, piece: int) -> list[Tensor]:
    """Return the features of rows (n,) in balanced pieces, run without a graph.

    A batch of one row may take another way through a library than a larger one, and give other
    bits. So a piece has one row only where it must: `piece` is 1, or the video has one row. Else a
    neighbour is run along with a single row.
    """
    alone = min(len(frames), piece) == 1
    features = []
    with torch.no_grad():
        for some in balanced(rows, piece):
            if len(some) > 1 or alone:
                features.append(encode(encoder, frames, some))
                continue
            first = (some - 1).clamp(min=0)  # sorted, as readers of files expect
            place = int(some - first)
            pair = encode(encoder, frames, torch.cat([first, first + 1]))
            features.append(pair[place : place + 1])
    return features


def encode_plain(encoder: nn.Module, frames: Frames, rows: Tensor, piece: int) -> Tensor:
    """Return the features of rows, run in pieces without a graph."""
    return torch.cat(detached_features(encoder, frames, rows, piece))


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


def parts_of(encoder: nn.Module, levels: Sequence[Level]) -> tuple[nn.Module, ...]:
    """Return the parts of an encoder: of a sequence if there are levels, otherwise itself.

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
        parts: Of the encoder, first to last.
        levels: The rows kept in each; the weights of the last are not applied here.
        frames: The video.
        rows: (n,) of its rows, sorted, all in the last level.
        piece: Rows at a time without a graph, at most.
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
    rest = detached_features(nn.Sequential(*before), frames, rows[~here], piece)
    places = here.nonzero()[:, 0], (~here).nonzero()[:, 0]
    return checked(part(join(places[0], features, places[1], rest)), len(rows))
