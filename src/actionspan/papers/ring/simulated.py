"""Ranks as threads of one process, with real messages and virtual time.

What the engine computes is real; when it happens is a model. A message of b bytes leaves when its
sender's port is free and keeps it busy for b·beta seconds; it begins to arrive alpha seconds later
and keeps the receiver's port busy for b·beta seconds. Ports are full duplex and serve messages in
the order in which sends and receives were posted, so that all who write to one server queue there.
Additions take gamma seconds a byte; everything else takes no time, a message of few bytes that many
ranks send to one as little as a single one. The clocks follow from the program alone, not from how
the threads happen to run.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

Result = TypeVar("Result")

ADDITIONS = (torch.add, torch.Tensor.add, torch.Tensor.add_)


class Costs(NamedTuple):
    """What messages and additions cost."""

    alpha: float
    """Seconds from a message's leaving to its arrival, whatever its length."""
    beta: float
    """Seconds a byte occupies a port."""
    gamma: float = 0.0
    """Seconds to add a byte of one tensor to another."""
    burst: float = 0.0
    """Bytes that a port lets through at once after it was idle: the token buckets of rate-limited
    links have such a store, which fills up at their rate; other networks have none."""


@dataclass
class _Message:
    """Bytes under way."""

    payload: bytes
    first: float
    """When its first byte left."""
    last: float
    """When its last byte left."""


class _Port:
    """One direction of a rank's link: a queue before a bucket of tokens, one for each byte."""

    def __init__(self, costs: Costs) -> None:
        self.beta, self.store = costs.beta, costs.burst * costs.beta
        self.free, self.owed = 0.0, -self.store

    def occupy(self, first: float, last: float, length: int) -> float:
        """Let a message through; return when its last byte has passed.

        Args:
            first: When its first byte is there; before it, those of earlier messages pass.
            last: When its last byte is there.
            length: Its bytes.
        """
        self.owed = max(self.owed, first - self.store) + length * self.beta
        self.free = max(self.free, last, self.owed)
        return self.free


class _Request:
    """A send or receive of one rank; `complete` is when it is, once that is known."""

    def __init__(self, rank: "SimulatedCommunicator", buffer: Any, key: tuple[int, int]) -> None:
        self.rank, self.buffer, self.key = rank, buffer, key
        self.complete: float | None = None

    def Test(self) -> bool:  # noqa: N802 - mpi4py's name
        """Wait until it is complete, and return True.

        Virtual time stands still while a rank only asks, so that it cannot answer no for ever.
        """
        self.rank.network.until_complete(self)
        assert self.complete is not None
        self.rank.seconds = max(self.rank.seconds, self.complete)
        return True


class _Network:
    """What all ranks share: messages on their way, ports and who waits."""

    def __init__(self, size: int, costs: Costs) -> None:
        self.costs = costs
        self.lock = threading.Lock()
        self.ranks = [SimulatedCommunicator(rank, size, self) for rank in range(size)]
        self.awake = [threading.Condition(self.lock) for _ in range(size)]
        self.waiting: dict[int, _Request] = {}
        self.ended: set[int] = set()
        self.broken = ""

    def deliver(self, rank: int) -> None:
        """Complete the receives of a rank, in the order of posting, as far as messages are here."""
        receiver = self.ranks[rank]
        while receiver.posted:
            request = receiver.posted[0]
            messages = receiver.mail.get(request.key)
            if not messages:
                return
            message = messages.popleft()
            receiver.posted.popleft()
            room = memoryview(request.buffer).cast("B")
            if len(room) != len(message.payload):
                source, tag = request.key
                self.broken = (
                    f"rank {rank} has room for {len(room)} bytes from rank {source}, "
                    f"tag {tag}, which sent {len(message.payload)}"
                )
                raise RuntimeError(self.broken)
            room[:] = message.payload
            alpha = self.costs.alpha
            request.complete = receiver.inward.occupy(
                message.first + alpha, message.last + alpha, len(room)
            )
            self.awake[rank].notify()

    def until_complete(self, request: _Request) -> None:
        """Sleep until a request is complete.

        Raises:
            RuntimeError: Another rank failed, or every rank waits for another.
        """
        rank = request.rank.Get_rank()
        with self.lock:
            self.waiting[rank] = request
            while request.complete is None and not self.broken:
                self.look_for_deadlock()
                if not self.broken:
                    self.awake[rank].wait()
            del self.waiting[rank]
            if request.complete is None:
                raise RuntimeError(self.broken)

    def look_for_deadlock(self) -> None:
        """Wake everybody up when all ranks wait and nothing is on its way; the lock is held."""
        stuck = {
            rank: request for rank, request in self.waiting.items() if request.complete is None
        }
        if len(stuck) + len(self.ended) == len(self.ranks):
            whom = "; ".join(
                f"rank {rank} waits for rank {request.key[0]}, tag {request.key[1]}"
                for rank, request in sorted(stuck.items())
            )
            self.stop(f"nothing is on its way: {whom}")

    def stop(self, why: str) -> None:
        """Make every rank that waits raise an error; the lock is held."""
        self.broken = self.broken or why
        for condition in self.awake:
            condition.notify()

    def end(self, rank: int, why: str = "") -> None:
        """Note that a rank has come to its end, by an error where `why` says so."""
        with self.lock:
            self.ended.add(rank)
            if why:
                self.stop(f"rank {rank}: {why}")
            elif self.waiting:
                self.look_for_deadlock()


class SimulatedCommunicator:
    """One rank's end of the network: a `communicator.Communicator`.

    Attributes:
        seconds: The rank's virtual clock.
    """

    def __init__(self, rank: int, size: int, network: _Network) -> None:
        self.network, self.seconds = network, 0.0
        self.outward, self.inward = _Port(network.costs), _Port(network.costs)
        self.mail: dict[tuple[int, int], deque[_Message]] = {}
        self.posted: deque[_Request] = deque()
        self._rank, self._size = rank, size

    def Get_rank(self) -> int:  # noqa: N802 - mpi4py's name
        """Return this rank's number."""
        return self._rank

    def Get_size(self) -> int:  # noqa: N802
        """Return how many ranks there are."""
        return self._size

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> _Request:  # noqa: N802
        """Send a buffer; what it holds now is what arrives."""
        payload = memoryview(buf).cast("B").tobytes()
        request = _Request(self, buf, (dest, tag))
        with self.network.lock:
            first = max(self.seconds, self.outward.free)
            last = self.outward.occupy(self.seconds, self.seconds, len(payload))
            request.complete = last
            message = _Message(payload, first, last)
            receiver = self.network.ranks[dest]
            receiver.mail.setdefault((self._rank, tag), deque()).append(message)
            self.network.deliver(dest)
        return request

    def Irecv(self, buf: Any, source: int, tag: int = 0) -> _Request:  # noqa: N802
        """Receive into a buffer of just the right size."""
        request = _Request(self, buf, (source, tag))
        with self.network.lock:
            self.posted.append(request)
            self.network.deliver(self._rank)
        return request


class _TimedAdditions(TorchFunctionMode):
    """Lets a rank's clock run while it adds tensors."""

    def __init__(self, comm: SimulatedCommunicator) -> None:
        super().__init__()
        self.comm = comm

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in ADDITIONS:
            self.comm.seconds += result.nbytes * self.comm.network.costs.gamma
        return result


def run_simulated(
    n: int,
    function: Callable[[SimulatedCommunicator], Result],
    alpha: float,
    beta: float,
    gamma: float = 0.0,
    burst: float = 0.0,
) -> tuple[list[Result], np.ndarray[Any, np.dtype[np.float64]]]:
    """Run a function on n ranks that talk over a simulated network.

    Args:
        n: Number of ranks, each a thread; some dozens at most.
        function: Called on each rank with its communicator.
        alpha: See `Costs`, as the others.
        beta: Seconds a byte.
        gamma: Seconds a byte added.
        burst: Bytes.

    Returns:
        What each rank returned, and (n,) the virtual seconds that each took.

    Raises:
        Exception: What the function raised on the first rank where it did.
        RuntimeError: Every rank waits for another, or a message does not fit its buffer.
    """
    network = _Network(n, Costs(alpha, beta, gamma, burst))
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def run(comm: SimulatedCommunicator) -> None:
        rank = comm.Get_rank()
        try:
            with _TimedAdditions(comm):
                results[rank] = function(comm)
        except BaseException as error:
            errors.append(error)
            network.end(rank, f"{type(error).__name__}: {error}")
        else:
            network.end(rank)

    threads = [threading.Thread(target=run, args=(comm,), daemon=True) for comm in network.ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[rank] for rank in range(n)], np.array([comm.seconds for comm in network.ranks])
