"""Who sends which block to whom: the ring and the sharded server as plain schedules.

A schedule is arithmetic on the rank alone. MPI runs it with one rank a process (`transfer.py`); the
simulator runs it for all ranks at once, with an array in place of the rank.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Round(NamedTuple):
    """One block to send and one to receive at the same time; blocks and ranks by number."""

    send: Any
    to: Any
    receive: Any
    source: Any


def block_bounds(length: int, blocks: int) -> list[int]:
    """Return where `blocks` blocks of `length` values start and end: floor(length·i / blocks).

    Block lengths differ by one at most; with fewer values than blocks, some are empty.
    """
    return [length * i // blocks for i in range(blocks + 1)]


def scatter_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the ring's scatter (paper 000, section III-D): each received block is added.

    Afterwards rank n holds the sum of block (n + 1) % size.
    """
    for i in range(size - 1):
        yield Round((rank - i) % size, (rank + 1) % size, (rank - i - 1) % size, (rank - 1) % size)


def gather_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the ring's gather: each received block replaces the rank's own.

    Paper 000 prints blocks (n - i - 1) and (n - i - 2), which is right for two ranks only: after
    the scatter, rank n has block n + 1, and must start with it.
    """
    for i in range(size - 1):
        yield Round((rank - i + 1) % size, (rank + 1) % size, (rank - i) % size, (rank - 1) % size)


def push_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the sharded server's first half: rank n collects all contributions to block n."""
    for j in range(1, size):
        yield Round((rank + j) % size, (rank + j) % size, rank, (rank - j) % size)


def pull_rounds(rank: Any, size: int) -> Iterator[Round]:
    """Yield the sharded server's second half: rank n sends the sum of block n to all."""
    for j in range(1, size):
        yield Round(rank, (rank + j) % size, (rank - j) % size, (rank - j) % size)
