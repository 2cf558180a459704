"""Links between processes: the data in shared memory, a token of a few bytes over a socket.

The memory has no name, unlike `multiprocessing.shared_memory`: it is gone with the last
process, however that ends. A socket reports at once that the other end is dead; a semaphore would
wait for ever. A connection of `multiprocessing` reports it too, but adds 25 µs to each message.
"""

import math
import mmap
import os
import pickle
import socket
import struct
import tempfile
from collections import deque
from collections.abc import Sequence
from multiprocessing import reduction
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from actionspan.streaming.errors import LinkClosedError
from actionspan.streaming.messages import Message

_SHARED: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # in shared memory now, by id
_ALIGNED = 64  # bytes; kernels may give other low bits elsewhere


class Spot(NamedTuple):
    """Where a tensor lies in a block; strides are a copy's, as others may change rounding."""

    offset: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def spots_of(tensors: Sequence[Tensor]) -> tuple[list[Spot], int]:
    """Return a spot for each tensor, one after the other, and the size of a block for all."""
    spots, end = [], 0
    for tensor in tensors:
        strides = torch.empty_like(tensor, device="meta").stride()
        spots.append(Spot(end, tensor.dtype, tuple(tensor.shape), strides))
        size = tensor.numel() * tensor.element_size()
        end += -(-size // _ALIGNED) * _ALIGNED
    return spots, end


class SharedBlock:
    """A block of bytes that other processes map too: send it as an argument of a new process.

    Nothing appears under /dev/shm, so nothing stays behind whoever is killed.
    """

    def __init__(self, size: int) -> None:
        descriptor = _anonymous_file()
        os.ftruncate(descriptor, max(1, size))
        self._map(descriptor)

    def _map(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)

    def tensor(self, spot: Spot, offset: int = 0) -> Tensor:
        """Return the tensor at a spot, counted from an offset.

        It is not a view of another tensor: autograd would take a change of one for a change of all.
        """
        count, offset = math.prod(spot.shape), offset + spot.offset
        if count == 0:
            return torch.empty(spot.shape, dtype=spot.dtype)
        flat = torch.frombuffer(self._memory, dtype=spot.dtype, count=count, offset=offset)
        return flat.as_strided(spot.shape, spot.strides)

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.descriptor)

    def __setstate__(self, handle: Any) -> None:
        self._map(handle.detach())

    @classmethod
    def of(cls, descriptor: int) -> "SharedBlock":
        """Return the block behind a descriptor that another process sent."""
        block = cls.__new__(cls)
        block._map(descriptor)
        return block

    def close(self) -> None:
        """Close the descriptor; tensors inside stay valid."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def module_tensors(module: Any) -> list[Tensor]:
    """Return the parameters and buffers of a module, each once."""
    if not isinstance(module, nn.Module):
        return []
    return [*module.parameters(), *module.buffers()]


def share(tensors: list[Tensor]) -> SharedBlock:
    """Move tensors into a block of shared memory; they stay the same objects.

    Raises:
        ValueError: Some are in such a block already.
    """
    if any(_SHARED.get(id(tensor)) is tensor for tensor in tensors):
        raise ValueError("a module of this pipeline runs in the processes of another one")
    spots, size = spots_of(tensors)
    block = SharedBlock(size)
    for tensor, spot in zip(tensors, spots, strict=True):
        view = block.tensor(spot)
        view.copy_(tensor.detach())
        tensor.data = view
        _SHARED[id(tensor)] = tensor
    return block


def unshare(tensors: list[Tensor]) -> None:
    """Move tensors back into memory of this process."""
    for tensor in tensors:
        tensor.data = tensor.detach().clone()
        _SHARED.pop(id(tensor), None)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("actionspan", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


SLOTS = 2  # messages on a link: the one being read and the one being written
_TOKEN = struct.Struct("<bq")  # kind, sample
_EMPTY, _DATA, _FIRST = range(3)
_SIZE = struct.Struct("<q")
_FREE = b"f"


class _Form(NamedTuple):
    spots: list[Spot]
    size: int
    alone: bool


class SocketOutlet:
    """The sending end. The first message states the form of all that follow."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._slots: list[list[Tensor]] = []
        self._free: deque[int] = deque(range(SLOTS))
        self._sent: deque[int] = deque()
        self._block: SharedBlock | None = None

    def send(self, message: Message | None) -> None:
        """Send a message; wait while both slots are in use.

        Raises:
            LinkClosedError: The receiver is gone.
        """
        try:
            if message is None:
                self.end.sendall(_TOKEN.pack(_EMPTY, -1))
                return
            if self._block is None:
                self._open(message)
            while not self._free:
                self._take_back(self.end.recv(SLOTS))
            slot = self._free.popleft()
            for place, tensor in zip(self._slots[slot], message.tensors, strict=True):
                place.copy_(tensor)
            self._sent.append(slot)
            self.end.sendall(_TOKEN.pack(_DATA, message.sample))
        except OSError:
            raise LinkClosedError from None

    def room(self) -> bool:
        """Return whether `send` would not wait."""
        if self._sent:
            try:
                self._take_back(self.end.recv(SLOTS, socket.MSG_DONTWAIT))
            except BlockingIOError:
                pass
            except OSError:
                raise LinkClosedError from None
        return bool(self._free)

    def _open(self, message: Message) -> None:
        form = _Form(*spots_of(message.tensors), message.alone)
        self._block = SharedBlock(SLOTS * form.size)
        self._slots = _slots(self._block, form)
        described = pickle.dumps(form)
        socket.send_fds(self.end, [_TOKEN.pack(_FIRST, -1)], [self._block.descriptor])
        self.end.sendall(_SIZE.pack(len(described)) + described)
        self._block.close()

    def _take_back(self, acknowledged: bytes) -> None:
        if not acknowledged:
            raise LinkClosedError
        for _ in acknowledged:
            self._free.append(self._sent.popleft())


class _SocketInlet:
    """The receiving end. Messages are copied out, so that a stage may keep them."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._form: _Form | None = None
        self._slots: list[list[Tensor]] = []
        self._next = 0

    def receive(self) -> Message | None:
        """Wait for the next message; None is a step without a sample.

        Raises:
            LinkClosedError: The sender is gone.
        """
        kind, sample = _TOKEN.unpack(self._exactly(_TOKEN.size))
        if kind == _FIRST:
            (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
            self._form = pickle.loads(self._exactly(size))
            self._slots = _slots(self._block, self._form)
            return self.receive()
        if kind == _EMPTY:
            return None
        assert self._form is not None
        tensors = tuple(tensor.clone() for tensor in self._slots[self._next])
        self._next = (self._next + 1) % SLOTS
        try:
            self.end.sendall(_FREE)
        except OSError:
            raise LinkClosedError from None
        return Message(sample, tensors, self._form.alone)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                if self._form is None:  # the block may come with it
                    part, descriptors, _, _ = socket.recv_fds(self.end, size - len(data), 1)
                    if descriptors:
                        self._block = SharedBlock.of(descriptors[0])
                        self._block.close()
                else:
                    part = self.end.recv(size - len(data))
            except OSError:
                raise LinkClosedError from None
            if not part:
                raise LinkClosedError
            data += part
        return data


def link() -> tuple[SocketOutlet, _SocketInlet]:
    """Return both ends of a link; a new process may get either as an argument."""
    ours, theirs = socket.socketpair()
    return SocketOutlet(ours), _SocketInlet(theirs)


def _slots(block: SharedBlock, form: _Form) -> list[list[Tensor]]:
    return [[block.tensor(spot, slot * form.size) for spot in form.spots] for slot in range(SLOTS)]
