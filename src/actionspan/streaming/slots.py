"""Links of fixed memory, as graphs need them: the messages of even and of odd steps take turns.

    step           t           t + 1
    stage h        reads 0     reads 1      (of the pair before it)
    stage h + 1    reads 0     reads 1      what stage h has written a step earlier:
    stage h        writes 1    writes 0     while one place is read, the other is written

So a stage that learns reads places t % 2 and writes places (t + 1) % 2, of outputs and of gradients
alike. One that infers writes tensors that are read in the same step: places t % 2.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from actionspan.streaming.device import CudaBackend, Event, Lane
from actionspan.streaming.messages import Message
from actionspan.streaming.transfer import Answers, Link, Parcel, Tensors, Wait


class Place:
    """Fixed memory, with the event after which it may be written again."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.read: Event | None = None


class Pair:
    """Two places of a lane; their memory is taken when the first message shows its form."""

    def __init__(self, backend: CudaBackend, lane: Lane) -> None:
        self._backend, self._lane = backend, lane
        self.places: list[Place] = []

    def __getitem__(self, number: int) -> Place:
        return self.places[number % 2]

    def make(self, like: Sequence[Tensor]) -> None:
        """Take the memory, for messages formed like these, unless it is there."""
        if not self.places:
            backend, device = self._backend, self._lane.device
            self.places = [
                Place(tuple(backend.static(tensor, device) for tensor in like)) for _ in range(2)
            ]

    def fill(self, number: int, tensors: Sequence[Tensor]) -> None:
        """Copy into a place, in the current stream: nothing else, as this is part of a graph."""
        for target, tensor in zip(self[number].tensors, tensors, strict=True):
            self._backend.copy(target, tensor)


class SlotLink(Link):
    """A link of two places, which a graph reads and writes at addresses that never change.

    Message number n goes through place n % 2. A stage that learns finds an empty message, number 0,
    so its message of step t has number t + 1.
    """

    def __init__(
        self, backend: CudaBackend, to: Lane, source: Lane | None = None, **how: Any
    ) -> None:
        super().__init__(backend, to, source, **how)
        self._in = self._out = Pair(backend, to)
        self._across = source is not None and source.device != to.device
        if source is not None and self._across:
            self._out = Pair(backend, source)
        self._reads, self._writes = 0, len(self._parcels)
        self._alone = True

    def put(self, message: Message | None) -> None:
        """Send a message from the host, which may change it once this returns."""
        if message is not None:
            self._in.make(message.tensors)
            self._alone = message.alone
        super().put(message)
        self._writes += 1

    def _room(self, like: Tensors) -> Tensors:
        """Return the next place, once the receiving stream may write there."""
        place = self._in[self._writes]
        if place.read is not None:
            self._backend.wait(self._to.receive, place.read)
        return place.tensors

    def send(self, message: Message | None, loss: None = None) -> None:
        """Send a message from the stage before; its compute stream is the current one."""
        assert self._source is not None
        if message is None:
            self.post(None, None)
            return
        self._in.make(message.tensors)
        self._out.make(message.tensors)
        self.open()
        self.fill(self._writes, message.tensors)
        self.post(message, self._backend.record(self._source.compute))

    def open(self, *, has_loss: bool = False) -> None:
        """Let the sending stage wait until nobody reads the place it writes next any more."""
        assert self._source is not None
        read = self._out[self._writes].read if self._out.places else None
        if read is not None:  # links to stages of which nothing learns never have a message
            self._backend.wait(self._source.compute, read)

    def fill(self, number: int, tensors: Tensors, loss: None = None) -> None:
        """Write a message where the stage after will read it, or where it is sent from."""
        self._out.fill(number, tensors)

    def post(
        self, message: Message | None, written: Event | None, *, has_loss: bool = False
    ) -> None:
        """Announce that the next place is written from an event on, and send it on.

        The message names its sample; its tensors are in the place. Without an event it is
        empty.
        """
        backend, number = self._backend, self._writes
        self._writes += 1
        if message is None or written is None:
            self._parcels.append(None)
            return
        self._alone = message.alone
        place = self._in[number]
        if self._across:
            source, to, outgoing = self._source, self._to, self._out[number]
            assert source is not None
            backend.wait(source.send, written)
            if place.read is not None:
                backend.wait(source.send, place.read)
            for target, tensor in zip(place.tensors, outgoing.tensors, strict=True):
                backend.copy_across(target, tensor, source.send, to.receive)
            outgoing.read, written = backend.record(source.send), backend.record(to.receive)
        self._parcels.append(Parcel(message._replace(tensors=place.tensors), written))

    def take(self) -> Message | None:
        """Return the next message; work queued on the compute stream from now on may read it."""
        parcel = self._parcels.popleft()
        self._reads += 1
        if parcel is None:
            return None
        self._backend.wait(self._to.compute, parcel.there)
        return parcel.message

    def release(self, done: Event) -> None:
        """Announce that the last message is not read after an event."""
        if self._in.places:
            self._in[self._reads - 1].read = done

    def at(self, number: int) -> Message:
        """Return the message in the place of a number, for a graph; its sample means nothing."""
        return Message(-1, self._in[number].tensors, self._alone)

    def _loaded(self, message: Message) -> Parcel:
        self._in.make(message.tensors)
        self._out.make(message.tensors)
        self._alone = message.alone
        with self._backend.on(self._to.compute):
            self._in.fill(self._reads, message.tensors)
        landed = message._replace(tensors=self._in[self._reads].tensors)
        return Parcel(landed, self._backend.record(self._to.compute))


class SlotAnswers(Answers):
    """Answers that a graph writes into one of two places; those with a loss have other places."""

    def __init__(self, backend: CudaBackend, lane: Lane, wait: Wait) -> None:
        super().__init__(backend, lane, wait)
        self._pairs = {has_loss: Pair(backend, lane) for has_loss in (False, True)}
        self._writes = 0

    def send(self, message: Message | None, loss: Tensor | None) -> None:
        """Send an answer; the compute stream of the last stage is the current one."""
        if message is None:
            self.post(None, None, has_loss=False)
            return
        self._pairs[loss is not None].make([*message.tensors, *([] if loss is None else [loss])])
        self.open(has_loss=loss is not None)
        self.fill(self._writes, message.tensors, loss)
        written = self._backend.record(self._lane.compute)
        self.post(message, written, has_loss=loss is not None)

    def open(self, *, has_loss: bool) -> None:
        """Let the last stage wait until the place it writes next has been copied to the host."""
        read = self._pairs[has_loss][self._writes].read
        if read is not None:
            self._backend.wait(self._lane.compute, read)

    def fill(self, number: int, output: Tensors, loss: Tensor | None) -> None:
        """Write an answer."""
        tensors = output if loss is None else (*output, loss)
        self._pairs[loss is not None].fill(number, tensors)

    def post(self, message: Message | None, written: Event | None, *, has_loss: bool) -> None:
        """Announce that the next place is written from an event on; None: without an answer."""
        number = self._writes
        self._writes += 1
        if message is None or written is None:
            self._pending.append(None)
            return
        place = self._pairs[has_loss][number]
        output = place.tensors[:-1] if has_loss else place.tensors
        loss = place.tensors[-1] if has_loss else None
        place.read = self._copy(message._replace(tensors=output), loss, written)
