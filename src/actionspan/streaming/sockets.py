"""Links between processes: the data in shared memory, a token of a few bytes over a socket.

A socket tells at once that the other end is dead; a semaphore would wait for ever.
"""

import pickle
import socket
import struct
from collections import deque
from typing import NamedTuple

from torch import Tensor

from actionspan.streaming.errors import LinkClosedError
from actionspan.streaming.messages import Layout, Message, layout_of
from actionspan.streaming.shared import SharedBlock, offsets

SLOTS = 2  # messages on a link: the one being read and the one being written
_TOKEN = struct.Struct("<bq")  # kind, sample
_EMPTY, _DATA, _FIRST = range(3)
_SIZE = struct.Struct("<q")
_FREE = b"f"


class _Form(NamedTuple):
    layout: Layout
    places: list[int]
    size: int
    alone: bool


def link() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a link, the sender's first."""
    return socket.socketpair()


class SocketOutlet:
    """The sending end. The first message tells the form of all that follow."""

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
        places, size = offsets(message.tensors)
        form = _Form(layout_of(message.tensors), places, size, message.alone)
        self._block = SharedBlock(SLOTS * size)
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


class SocketInlet:
    """The receiving end; messages lie in the shared memory until they are released."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._form: _Form | None = None
        self._slots: list[list[Tensor]] = []
        self._next = 0
        self._held = 0

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
        tensors = tuple(self._slots[self._next])
        self._next = (self._next + 1) % SLOTS
        self._held += 1
        return Message(sample, tensors, self._form.alone)

    def release(self) -> None:
        """Let the sender write over what was received so far."""
        if self._held:
            try:
                self.end.sendall(_FREE * self._held)
            except OSError:
                raise LinkClosedError from None
            self._held = 0

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


def _slots(block: SharedBlock, form: _Form) -> list[list[Tensor]]:
    return [
        [
            block.tensor(slot * form.size + place, dtype, shape)
            for place, (dtype, shape) in zip(form.places, form.layout, strict=True)
        ]
        for slot in range(SLOTS)
    ]
