"""For scripts that are run by mpirun: cases on the first few ranks, while the others sleep."""

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from actionspan.parallel.launch import world
from actionspan.parallel.settings import processes


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


def from_words(words: Iterable[str]) -> list[tuple[int, str, str]]:
    """Return ranks, name and case of words WORKERS:EXCHANGE[,setting=value…]."""
    split = [(word, *word.split(":")) for word in words]
    return [
        (processes(case.split(",")[0], int(workers)), word, case) for word, workers, case in split
    ]


def run_cases(run: Callable[[Any, Any], Any], cases: Iterable[tuple[int, str, Any]]) -> None:
    """Run each case on so many of the first ranks; rank 0 prints what it returns as JSON."""
    torch.set_num_threads(1)
    everyone = world()
    rank, comms = everyone.Get_rank(), first_ranks(everyone)
    for ranks, name, case in cases:
        assert ranks < len(comms), "a case needs more ranks than there are"
        made = run(case, comms[ranks]) if rank < ranks else None
        if rank == 0:
            print(json.dumps({"case": name, **(made or {})}), flush=True)
        sleep_until_all_are_here(everyone)
