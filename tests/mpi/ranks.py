"""For scripts that are run by mpirun: cases on the first few ranks, while the others sleep."""

import time
from typing import Any


def first_ranks(everyone: Any) -> list[Any]:
    """Return communicators of the first 0, 1, … ranks; where this rank is not in one, a null."""
    from mpi4py import MPI

    rank, size = everyone.Get_rank(), everyone.Get_size()
    return [everyone.Split(0 if rank < n else MPI.UNDEFINED, rank) for n in range(size + 1)]


def sleep_until_all_are_here(comm: Any) -> None:
    """Wait for the other ranks, leaving them the cores."""
    here = comm.Ibarrier()
    while not here.Test():
        time.sleep(0.003)
