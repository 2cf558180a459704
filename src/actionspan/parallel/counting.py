"""A communicator that counts what passes it."""

from collections import Counter
from typing import Any

from actionspan.parallel.communicator import PointToPoint, phase_of


class CountingCommunicator:
    """Passes every call on and counts bytes and messages by peer and phase.

    Counts are exact and the same on every machine, unlike seconds. What the MPI library sends
    inside its collective calls (`Allreduce`) is not counted.

    Args:
        comm: An mpi4py communicator, or one like it.

    Attributes:
        sent_bytes, sent_messages, received_bytes, received_messages: Counters with keys
            (peer, phase); the phases are `communicator.PHASES`.
    """

    def __init__(self, comm: PointToPoint) -> None:
        self.comm = comm
        self.reset()

    def total_sent(self) -> int:
        """Return the bytes sent to all peers in all phases."""
        return sum(self.sent_bytes.values())

    def reset(self) -> None:
        """Set all counts to zero."""
        self.sent_bytes: Counter[tuple[int, str]] = Counter()
        self.sent_messages: Counter[tuple[int, str]] = Counter()
        self.received_bytes: Counter[tuple[int, str]] = Counter()
        self.received_messages: Counter[tuple[int, str]] = Counter()

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Any:
        """Count a message and send it."""
        self.sent_messages[dest, phase_of(tag)] += 1
        self.sent_bytes[dest, phase_of(tag)] += buf.nbytes
        return self.comm.Isend(buf, dest, tag)

    def Irecv(self, buf: Any, source: int, tag: int = 0) -> Any:
        """Count a message and receive it."""
        self.received_messages[source, phase_of(tag)] += 1
        self.received_bytes[source, phase_of(tag)] += buf.nbytes
        return self.comm.Irecv(buf, source, tag)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)
