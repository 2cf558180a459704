"""What encoders are given: the rows of one video."""

from typing import Protocol

import torch
from torch import Tensor, nn


class Frames(Protocol):
    """The rows of a video, e.g. a tensor (T, …), or pictures that are decoded when asked for."""

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
    """Return what an encoder is called with for these rows."""
    found = frames[rows]
    return found if isinstance(found, tuple) else (found,)


def encode(encoder: nn.Module, frames: Frames, rows: Tensor) -> Tensor:
    """Return the features of rows (n,), (n, …).

    Raises:
        ValueError: The encoder gives another number of rows.
    """
    return checked(encoder(*inputs_of(frames, rows)), len(rows))


def encode_all(encoder: nn.Module, frames: Frames) -> Tensor:
    """Return what plain `encoder(frames)` is, to the bit; a tensor is not copied."""
    inputs = (frames,) if isinstance(frames, Tensor) else inputs_of(frames, all_rows(frames))
    return checked(encoder(*inputs), len(frames))


def checked(features: Tensor, count: int) -> Tensor:
    """Return features, one for each of `count` rows.

    Raises:
        ValueError: There are more or fewer, or they are no tensor.
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
