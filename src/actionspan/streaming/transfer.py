"""How messages go between the host and devices, and from stage to stage, without a host that waits.

    host -> pinned memory -> [receive] -> [compute] of stage 1 -> ([send] -> [receive]) -> [compute]
    of stage 2 ... of stage D -> [send] -> pinned memory -> host

In brackets: the streams; an arrow between two is an event. The middle two are used where the device
changes; on one device the next stage reads the output of the one before.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from actionspan.streaming.device import CudaBackend, Event, Lane
from actionspan.streaming.messages import Answer, Layout, Message, cloned, layout_of

Tensors = tuple[Tensor, ...]
Wait = Callable[[Event], None]  # lets the host wait


class Parcel(NamedTuple):
    """A message in memory of who gets it, from an event on."""

    message: Message
    there: Event


class Pinned:
    """Pinned buffers that are used again once a device has copied from them or the host has."""

    def __init__(self, backend: CudaBackend, wait: Wait, most: int | None = None) -> None:
        self._backend, self._wait, self._most = backend, wait, most
        self._free: dict[Layout, list[Tensors]] = {}
        self._busy: deque[tuple[Tensors, Event]] = deque()

    def take(self, like: Tensors) -> Tensors:
        """Return buffers for tensors formed like these; wait if `most` are in use by a device."""
        while self._busy and self._backend.done(self._busy[0][1]):
            self.give(self._busy.popleft()[0])
        if self._most is not None and len(self._busy) >= self._most:
            buffers, event = self._busy.popleft()
            self._wait(event)
            self.give(buffers)
        free = self._free.get(layout_of(like))
        return free.pop() if free else tuple(self._backend.pinned(tensor) for tensor in like)

    def lend(self, buffers: Tensors, until: Event) -> None:
        """Note that a device reads buffers until an event."""
        self._busy.append((buffers, until))

    def give(self, buffers: Tensors) -> None:
        """Note that buffers are free again."""
        self._free.setdefault(layout_of(buffers), []).append(buffers)


class Link:
    """Messages to a stage, from another one or from the host, first in first out.

    Each message has memory of its own: nothing is overwritten, and the allocator knows of every
    stream that a tensor comes to.

    Args:
        backend: Of the devices.
        to: The lane of the stage that gets them.
        source: The lane of the stage that sends them; None: the host does.
        waiting: Whether it begins with an empty message, as links do between stages that learn.
        pinned: For messages from the host.
    """

    def __init__(
        self,
        backend: CudaBackend,
        to: Lane,
        source: Lane | None = None,
        *,
        waiting: bool = False,
        pinned: Pinned | None = None,
    ) -> None:
        self._backend, self._to, self._source, self._pinned = backend, to, source, pinned
        self._parcels: deque[Parcel | None] = deque([None] if waiting else [])

    def put(self, message: Message | None) -> None:
        """Send a message from the host, which may change it once this returns."""
        if message is None:
            self._parcels.append(None)
            return
        backend, receive, pinned = self._backend, self._to.receive, self._pinned
        assert pinned is not None
        buffers = pinned.take(message.tensors)
        for buffer, tensor in zip(buffers, message.tensors, strict=True):
            buffer.copy_(tensor)
        with backend.on(receive):
            tensors = self._room(message.tensors)
            for tensor, buffer in zip(tensors, buffers, strict=True):
                backend.copy(tensor, buffer)
        there = backend.record(receive)
        pinned.lend(buffers, there)
        self._parcels.append(Parcel(message._replace(tensors=tensors), there))

    def _room(self, like: Tensors) -> Tensors:
        """Return memory for a message, in the receiving stream."""
        return tuple(self._backend.empty(tensor, self._to.device) for tensor in like)

    def send(self, message: Message | None, loss: None = None) -> None:
        """Send a message from the stage before; its compute stream is the current one."""
        if message is None:
            self._parcels.append(None)
            return
        backend, to, source = self._backend, self._to, self._source
        assert source is not None
        tensors, there = message.tensors, backend.record(source.compute)
        if source.device != to.device:
            with backend.on(to.receive):
                tensors = self._room(message.tensors)
            backend.wait(source.send, there)
            for target, tensor in zip(tensors, message.tensors, strict=True):
                backend.hold(tensor, source.send)
                backend.copy_across(target, tensor, source.send, to.receive)
            there = backend.record(to.receive)
        self._parcels.append(Parcel(message._replace(tensors=tensors), there))

    def take(self) -> Message | None:
        """Return the next message; work queued on the compute stream from now on may read it."""
        parcel = self._parcels.popleft()
        if parcel is None:
            return None
        self._backend.wait(self._to.compute, parcel.there)
        for tensor in parcel.message.tensors:
            self._backend.hold(tensor, self._to.compute)
        return parcel.message

    def release(self, done: Event) -> None:
        """Announce that the last message is not read after an event."""

    def held(self) -> list[Message | None]:
        """Return the messages on their way."""
        return [parcel and parcel.message for parcel in self._parcels]

    def load(self, messages: Sequence[Message | None]) -> None:
        """Put messages of the host in the place of those on their way; all streams are idle."""
        self._parcels.clear()
        for message in messages:
            self._parcels.append(message and self._loaded(message))

    def _loaded(self, message: Message) -> Parcel:
        with self._backend.on(self._to.compute):
            tensors = self._room(message.tensors)
            for target, tensor in zip(tensors, message.tensors, strict=True):
                self._backend.copy(target, tensor)
        landed = message._replace(tensors=tensors)
        return Parcel(landed, self._backend.record(self._to.compute))


class _Pending(NamedTuple):
    """An answer on its way to the host; its last buffer is the loss, if there is one."""

    message: Message
    loss: bool
    there: Event


class Answers:
    """The answers of the last stage, on their way to the host, first in first out."""

    def __init__(self, backend: CudaBackend, lane: Lane, wait: Wait) -> None:
        self._backend, self._lane, self._wait = backend, lane, wait
        self._pinned = Pinned(backend, wait)
        self._pending: deque[_Pending | None] = deque()

    def send(self, message: Message | None, loss: Tensor | None) -> None:
        """Send an answer; the compute stream of the last stage is the current one."""
        if message is None:
            self._pending.append(None)
            return
        self._copy(message, loss, self._backend.record(self._lane.compute))

    def _copy(self, message: Message, loss: Tensor | None, ready: Event) -> Event:
        """Copy an answer to the host once it is ready; return when that is done."""
        backend, stream = self._backend, self._lane.send
        tensors = (*message.tensors, *(() if loss is None else (loss,)))
        buffers = self._pinned.take(tensors)
        backend.wait(stream, ready)
        with backend.on(stream):
            for buffer, tensor in zip(buffers, tensors, strict=True):
                backend.hold(tensor, stream)
                backend.copy(buffer, tensor)
        there = backend.record(stream)
        landing = message._replace(tensors=buffers)
        self._pending.append(_Pending(landing, loss is not None, there))
        return there

    def ready(self) -> bool:
        """Return whether the oldest answer is there."""
        if not self._pending:
            return False
        first = self._pending[0]
        return first is None or self._backend.done(first.there)

    def reply(self) -> Answer | None:
        """Return the oldest answer in ordinary memory of its own, after waiting for it."""
        pending = self._pending[0]
        if pending is not None:
            self._wait(pending.there)
        self._pending.popleft()
        if pending is None:
            return None
        message = cloned(pending.message)
        self._pinned.give(pending.message.tensors)
        if not pending.loss:
            return Answer(message, None)
        *output, loss = message.tensors
        return Answer(message._replace(tensors=tuple(output)), loss)

    def clear(self) -> None:
        """Forget all answers."""
        self._pending.clear()
