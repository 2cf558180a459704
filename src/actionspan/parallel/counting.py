"""A communicator that counts what passes it."""

from collections import Counter
from typing import Any

from actionspan.parallel.communicator import PointToPoint, phase_of


class CountingCommunicator:
    """Passes every call on and counts bytes and messages by peer and phase.

    The counts are exact and the same on every machine, which seconds are not. What the MPI library
    sends inside its own collective calls (`Allreduce`) is not seen.

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

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Any:  # noqa: N802 - mpi4py's name
        """Count a message and send it."""
        key = (dest, phase_of(tag))
        self.sent_messages[key] += 1
        self.sent_bytes[key] += buf.nbytes
        return self.comm.Isend(buf, dest, tag)

    def Irecv(self, buf: Any, source: int, tag: int = 0) -> Any:  # noqa: N802
        """Count a message and receive it."""
        key = (source, phase_of(tag))
        self.received_messages[key] += 1
        self.received_bytes[key] += buf.nbytes
        return self.comm.Irecv(buf, source, tag)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)
