"""What a process knows of its launcher before MPI has started, and without torch."""

import os
import time

# How many ranks there are on this machine, by the names that launchers give it.
LOCAL_RANKS = (
    "MPI_LOCALNRANKS",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
)
# How many there are in all, and which this is (a batch job has SLURM_NTASKS and SLURM_PROCID before
# it starts any rank).
RANKS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PALS_SIZE")
RANK = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID", "PMIX_RANK")
ROOT_SPEAKS_SECONDS = 5.0

_parent: int | None = None


def _number(names: tuple[str, ...], default: int) -> int:
    found = (os.environ.get(name, "") for name in names)
    return next((int(value) for value in found if value.isdigit()), default)


def launched() -> int:
    """Return how many processes the launcher started."""
    return _number(RANKS, 1)


def is_rank() -> bool:
    """Return whether a launcher started this process, be it alone."""
    return any(name in os.environ for name in (*RANKS, *RANK))


def crowded() -> bool:
    """Return whether this machine has more ranks than cores."""
    return _number(LOCAL_RANKS, 1) > cores()


def cores() -> int:
    """Return how many cores the ranks of this machine share.

    A rank may be bound to a core of its own, so the launcher is asked, which is not.
    """
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    return max(len(os.sched_getaffinity(pid)) for pid in (0, os.getppid()))


def remember() -> None:
    """Remember which process started this one; to be called before MPI starts."""
    global _parent
    _parent = _parent or os.getppid()


def orphaned() -> bool:
    """Return whether the process that was remembered has ended."""
    return _parent is not None and os.getppid() != _parent


def let_root_speak() -> bool:
    """Give rank 0 time to say what all ranks are about to say, and to end the job.

    Called where something is wrong that may be wrong for all ranks alike.

    Returns:
        Whether this process is rank 0, or no rank. It then returns at once.
    """
    root = _number(RANK, 0) == 0
    if not root:
        time.sleep(ROOT_SPEAKS_SECONDS)
    return root
