"""Padding as TensorFlow's SAME does it."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional


def pad_same(batch: Tensor, kernel: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Pad (B, C, …) with zeros so that each output length is ceil(input / stride).

    An odd pixel goes to the end.
    """
    padding: list[int] = []
    for size, width, step in zip(batch.shape[2:], kernel, stride, strict=True):
        total = max((-(-size // step) - 1) * step + width - size, 0)
        padding = [total // 2, total - total // 2, *padding]  # torch counts from the last axis
    return functional.pad(batch, padding) if any(padding) else batch
