"""The launcher of this process, known before MPI starts and without torch."""

import os
import time

# The number of ranks on this machine, under the names that launchers use.
LOCAL_RANKS = (
    "MPI_LOCALNRANKS",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
    "LOCAL_WORLD_SIZE",
)
# Which of them this is. SLURM's comes last: a batch job has it before it starts any rank.
LOCAL_RANK = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID")
# The number of all ranks, and which this is (a batch job has SLURM_NTASKS and SLURM_PROCID before
# it starts any rank).
RANKS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PALS_SIZE")
RANK = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID", "PMIX_RANK")
# torchrun's, which others set too: they count only where torchrun's own name is there.
TORCHRUN = "TORCHELASTIC_RUN_ID"
_TORCHRUN_RANKS, _TORCHRUN_RANK = "WORLD_SIZE", "RANK"
_ROOT_SPEAKS_SECONDS = 5.0

supervised: int | None = None  # what started this process's supervisor, if it has one
from_mpi: tuple[int, int] | None = None  # `local_rank`, once MPI has started
_parent: int | None = None


def _number(names: tuple[str, ...], default: int) -> int:
    values = (os.environ.get(name, "") for name in names)
    return next((int(value) for value in values if value.isdigit()), default)


def by_torchrun() -> bool:
    """Return whether torchrun started this process."""
    return TORCHRUN in os.environ


def launched() -> int:
    """Return how many processes the launcher started."""
    return _number((_TORCHRUN_RANKS,) if by_torchrun() else RANKS, 1)


def rank() -> int:
    """Return which of them this is; 0 without a launcher."""
    return _number((_TORCHRUN_RANK,) if by_torchrun() else RANK, 0)


def local_rank() -> tuple[int, int]:
    """Return which rank of this machine this is, and how many there are."""
    names = (("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)) if by_torchrun() else (LOCAL_RANK, LOCAL_RANKS)
    from_launcher = (_number(names[0], 0), _number(names[1], 1)) if launched() > 1 else (0, 1)
    return from_mpi or from_launcher


def command(ranks: int) -> str:
    """Return the command that starts `ranks` of `python`, by the launcher of this process."""
    if by_torchrun():
        return f"torchrun --nproc-per-node {ranks} --no-python python"
    return f"mpiexec -n {ranks} python -m mpi4py"


def is_rank() -> bool:
    """Return whether a launcher started this process, even a single one."""
    return by_torchrun() or any(name in os.environ for name in (*RANKS, *RANK))


def crowded() -> bool:
    """Return whether this machine has more ranks than cores."""
    return _number(LOCAL_RANKS, 1) > cores()


def cores() -> int:
    """Return how many cores the ranks of this machine share.

    A rank may be bound to its own core; the launcher is not, so its cores count too.
    """
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    return max(len(os.sched_getaffinity(pid)) for pid in (0, supervised or os.getppid()))


def remember() -> None:
    """Remember which process started this one; call it before MPI starts."""
    global _parent
    _parent = _parent or os.getppid()


def orphaned() -> bool:
    """Return whether the remembered process has ended."""
    return _parent is not None and os.getppid() != _parent


def wait_for_root() -> bool:
    """Return whether this process is rank 0 or no rank; others first sleep a few seconds.

    Called before reporting an error that all ranks may have: rank 0 gets the time to report it and
    to end the job.
    """
    root = rank() == 0
    if not root:
        time.sleep(_ROOT_SPEAKS_SECONDS)
    return root
