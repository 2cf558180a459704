"""Blocks of one tensor on their way between ranks: pieces, wire types, sums in place."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from actionspan.parallel.communicator import PointToPoint, as_buffer, settle, tag_of, wait

PIECE_BYTES = 2 << 20  # short enough to be added while it is still in a cache
IN_FLIGHT = 2  # pieces under way in each direction
_SCRATCH = threading.local()
SUMMED = (torch.float32, torch.float64)  # as they are; others in float32
_TYPES = (*SUMMED, torch.float16, torch.bfloat16)


def check(tensor: Tensor) -> None:
    """Raise ValueError for a tensor that is not contiguous or not of a floating type."""
    if tensor.dtype not in _TYPES:
        names = ", ".join(str(kind).removeprefix("torch.") for kind in _TYPES)
        raise ValueError(f"tensor of {tensor.dtype}: one of {names}")
    if not tensor.is_contiguous():
        raise ValueError(f"tensor with strides {tensor.stride()}: it must be contiguous")


def zeros(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return (length,) zeros, on a CPU in huge pages where the system has them.

    MPI copies from process to process page by page: 64 MiB take half the time in huge ones. NumPy
    asks for them, torch does not.
    """
    if device.type != "cpu" or not length:
        return torch.zeros(length, dtype=dtype, device=device)
    return torch.from_numpy(np.zeros(length * dtype.itemsize, dtype=np.uint8)).view(dtype)


def scratch(use: str, length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return (length,) room with any values; this thread gets the same for the same use again."""
    kept: dict[Any, Tensor] = _SCRATCH.__dict__
    key = f"{use} {dtype} {device}"
    if key not in kept or len(kept[key]) < length:
        kept[key] = zeros(length, dtype, device)
    return kept[key][:length]


@contextmanager
def workspace(tensor: Tensor, cuda_aware: bool = False) -> Iterator[Tensor]:
    """Yield a flat float32 or float64 tensor to sum into; `tensor` has its values afterwards.

    A float32 or float64 CPU tensor is its own workspace. Half-precision tensors are summed in
    float32. GPU tensors are staged through pinned memory unless MPI is CUDA-aware.

    Raises:
        ValueError: The tensor is not contiguous or not of a floating type.
    """
    check(tensor)
    flat = tensor.detach().view(-1)
    wide = torch.float64 if flat.dtype == torch.float64 else torch.float32
    stay = flat.device.type == "cpu" or cuda_aware
    if stay and flat.dtype == wide:
        yield flat
        return
    if stay:
        held = zeros(len(flat), wide, flat.device)
    else:
        held = torch.empty(flat.shape, dtype=wide, pin_memory=True)
    held.copy_(flat)
    yield held
    flat.copy_(held)


@dataclass
class Transfer:
    """Sends and receives blocks of a flat tensor, piece by piece."""

    flat: Tensor  # (M,) the values, float32 or float64
    bounds: Sequence[int]  # block b is flat[bounds[b]:bounds[b + 1]]
    comm: PointToPoint
    bucket: int  # chooses the tags
    wire: torch.dtype  # the type in which values travel
    piece_bytes: int = PIECE_BYTES  # most bytes of a message

    def block(self, number: int) -> Tensor:
        """Return a view of a block."""
        return self.flat[self.bounds[number] : self.bounds[number + 1]]

    def exchange(
        self,
        phase: str,
        send: Tensor | None,
        to: int,
        receive: Tensor | None,
        source: int,
        *,
        add: bool,
    ) -> None:
        """Send a view and receive into another, at the same time; either may be None or empty.

        Received values are added to `receive`, or replace its own.
        """
        tag = tag_of(self.bucket, phase)
        outgoing, incoming = self.pieces(send), self.pieces(receive)
        count = max(len(outgoing), len(incoming))
        sending: deque[Any] = deque()
        receiving: deque[tuple[Any, Tensor, Tensor]] = deque()
        for number in range(count + IN_FLIGHT):
            # complete the pieces that were started IN_FLIGHT turns ago
            if IN_FLIGHT <= number < len(incoming) + IN_FLIGHT:
                request, landing, into = receiving.popleft()
                wait(request)
                if add:
                    into.add_(landing)
                elif landing is not into:
                    into.copy_(landing)
                settle(into)  # before its scratch is used again and before it is sent on
            if IN_FLIGHT <= number < len(outgoing) + IN_FLIGHT:
                wait(sending.popleft())

            # start the next ones
            if number < len(incoming):
                into = incoming[number]
                direct = not add and self.wire == into.dtype
                landing = into if direct else self._spare("in", number, into)
                request = self.comm.Irecv(as_buffer(landing), source, tag)
                receiving.append((request, landing, into))
            if number < len(outgoing):
                values = outgoing[number]
                if self.wire != values.dtype:
                    values = self._spare("out", number, values).copy_(values)
                settle(values)
                sending.append(self.comm.Isend(as_buffer(values), to, tag))

    def round_to_wire(self, view: Tensor) -> None:
        """Give values the precision that other ranks get them in."""
        if self.wire != view.dtype:
            view.copy_(view.to(self.wire))

    def pieces(self, view: Tensor | None) -> tuple[Tensor, ...]:
        """Return parts of a view, each a message; an empty view has none."""
        if view is None or not len(view):
            return ()
        return torch.split(view, max(1, self.piece_bytes // self.wire.itemsize))

    def _spare(self, way: str, number: int, like: Tensor) -> Tensor:
        """Return scratch for a piece, free again when the piece after the next starts."""
        return scratch(f"{way} {number % IN_FLIGHT}", len(like), self.wire, like.device)
