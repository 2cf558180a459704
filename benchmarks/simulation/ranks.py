"""Ranks as threads of one process, with real messages and virtual time.

What the engine computes is real; when it happens is a model. A message of b bytes leaves when its
sender's port is free and keeps it busy for b·beta seconds; it begins to arrive alpha seconds later
and keeps the receiver's port busy for b·beta seconds. Ports are full duplex and serve messages in
the order in which sends and receives were posted, so that all who write to one server queue there.
Additions take gamma seconds a byte; everything else takes no time, nor do many short messages to
one rank cost more than their bytes. The clocks follow from the program alone, not from how the
threads happen to run.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from actionspan.arrays import Float64

Result = TypeVar("Result")

ADDITIONS = (torch.add, torch.Tensor.add, torch.Tensor.add_)


class Costs(NamedTuple):
    """What messages and additions cost.

    `burst` is what a port lets through at once after it was idle: the token buckets of rate-limited
    links have such a store, which refills at their rate; other networks have none.
    """

    alpha: float  # seconds from a message's leaving to its arrival, whatever its length
    beta: float  # seconds that a byte occupies a port
    gamma: float = 0.0  # seconds to add a byte of one tensor to another
    burst: float = 0.0  # bytes


class Port:
    """One direction of a link: a queue before a bucket of tokens, one for each byte.

    With arrays in place of numbers, it is the ports of many ranks.
    """

    def __init__(self, costs: Costs) -> None:
        self.beta, self.store = costs.beta, costs.burst * costs.beta
        self.free: Any = 0.0
        self.owed: Any = -self.store

    def occupy(self, first: Any, last: Any, length: Any) -> Any:
        """Let a message through; return when its last byte has passed.

        `first` and `last` are when its first and last of `length` bytes are there. Tokens that come
        before `first` go to earlier messages.
        """
        self.owed = np.maximum(self.owed, first - self.store) + length * self.beta
        self.free = np.maximum(np.maximum(self.free, last), self.owed)
        return self.free


class _Message(NamedTuple):
    payload: bytes
    first: float  # when its first byte left
    last: float  # when its last byte left


class _Request:
    """A send or receive of one rank; `complete` is when it is, once that is known."""

    def __init__(self, comm: "SimulatedCommunicator", buffer: Any, key: tuple[int, int]) -> None:
        self.comm, self.buffer, self.key = comm, buffer, key
        self.complete: float | None = None

    def Test(self) -> bool:
        """Wait until it is complete; virtual time does not pass while a rank only polls."""
        self.comm.network.until_complete(self)
        assert self.complete is not None
        self.comm.seconds = max(self.comm.seconds, self.complete)
        return True


class _Network:
    """What all ranks share: messages under way, ports and who waits."""

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
        while receiver.posted and receiver.mail[receiver.posted[0].key]:
            request = receiver.posted.popleft()
            message = receiver.mail[request.key].popleft()
            room = memoryview(request.buffer).cast("B")
            if len(room) != len(message.payload):
                source = "rank {}, tag {}".format(*request.key)
                sent = f"{source}, which sent {len(message.payload)}"
                self.broken = f"rank {rank} has room for {len(room)} bytes from {sent}"
                raise RuntimeError(self.broken)
            room[:] = message.payload
            alpha = self.costs.alpha
            request.complete = receiver.inward.occupy(
                message.first + alpha, message.last + alpha, len(room)
            )
            self.awake[rank].notify()

    def until_complete(self, request: _Request) -> None:
        """Sleep until a request is complete; RuntimeError if it cannot be any more."""
        rank = request.comm.Get_rank()
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
        """Wake all ranks when all wait and nothing is under way; the lock is held."""
        stuck = {rank: each for rank, each in self.waiting.items() if each.complete is None}
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
        """Note that a rank has ended, by an error if `why` says so."""
        with self.lock:
            self.ended.add(rank)
            if why:
                self.stop(f"rank {rank}: {why}")
            elif self.waiting:
                self.look_for_deadlock()


class SimulatedCommunicator:
    """One rank's end of the network, a `PointToPoint`; `seconds` is the rank's virtual clock."""

    def __init__(self, rank: int, size: int, network: _Network) -> None:
        self.network, self.seconds = network, 0.0
        self.outward, self.inward = Port(network.costs), Port(network.costs)
        self.mail: defaultdict[tuple[int, int], deque[_Message]] = defaultdict(deque)
        self.posted: deque[_Request] = deque()
        self._rank, self._size = rank, size

    def Get_rank(self) -> int:
        """Return this rank's number."""
        return self._rank

    def Get_size(self) -> int:
        """Return the number of ranks."""
        return self._size

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> _Request:
        """Send a buffer with the values that it holds now."""
        payload = memoryview(buf).cast("B").tobytes()
        request = _Request(self, buf, (dest, tag))
        with self.network.lock:
            first = max(self.seconds, self.outward.free)
            last = self.outward.occupy(self.seconds, self.seconds, len(payload))
            request.complete = last
            self.network.ranks[dest].mail[self._rank, tag].append(_Message(payload, first, last))
            self.network.deliver(dest)
        return request

    def Irecv(self, buf: Any, source: int, tag: int = 0) -> _Request:
        """Receive into a buffer of exactly the right size."""
        request = _Request(self, buf, (source, tag))
        with self.network.lock:
            self.posted.append(request)
            self.network.deliver(self._rank)
        return request


class _TimedAdditions(TorchFunctionMode):
    """Advances a rank's clock while it adds tensors."""

    def __init__(self, comm: SimulatedCommunicator) -> None:
        super().__init__()
        self.comm = comm

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
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
) -> tuple[list[Result], Float64]:
    """Run a function on n ranks, some dozens at most, that talk over a simulated network.

    Each rank is a thread that calls it with its communicator. The other arguments are `Costs`.

    Returns:
        What each rank returned, and (n,) the virtual seconds that each took.

    Raises:
        Exception: What the function raised on the first rank that failed.
        RuntimeError: Every rank waits for another, or a message does not fit its buffer.
    """
    network = _Network(n, Costs(alpha, beta, gamma, burst))
    errors: list[BaseException] = []

    def run(comm: SimulatedCommunicator) -> Result:
        why = ""
        try:
            with _TimedAdditions(comm):
                return function(comm)
        except BaseException as error:
            errors.append(error)
            why = f"{type(error).__name__}: {error}"
            raise
        finally:
            network.end(comm.Get_rank(), why)

    with ThreadPoolExecutor(n) as pool:
        running = [pool.submit(run, comm) for comm in network.ranks]
    if errors:
        raise errors[0]
    return [rank.result() for rank in running], np.array([comm.seconds for comm in network.ranks])
