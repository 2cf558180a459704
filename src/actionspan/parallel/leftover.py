"""Shared memory that killed ranks left, in which the same job, started again, would wait for ever.

The ranks of a node share a file that MPICH names by a hash of PMI's job, which under SLURM is
`{job}.{step}`, and MPICH 5.0 takes a file of that name as it finds it. A job that SLURM queues
again has the number that it had, so that its ranks meet in the state of those that were killed: one
or the other waits in MPI_Init without end. mpiexec gives a new name each time.
"""

import os
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_YOUNG_SECONDS = 10.0  # ranks of one start begin well within this
_OFFSET, _PRIME = 0x811C9DC5, 0x01000193  # of the hash FNV-1a with 32 bits


def remove_leftovers(job: str, folder: Path = SHARED_MEMORY) -> None:
    """Remove the files of PMI's job that no process has mapped; to be called before MPI starts.

    Any number of ranks may call it at once, each before it starts MPI itself.

    Args:
        job: PMI's name of the job, `PMI_JOBID`.
        folder: Where shared memory is.
    """
    for path in folder.glob(f"{shared_name(job)}_*"):
        try:
            _remove_if_left(path)
        except OSError:
            continue  # another rank was faster, or it belongs to somebody else


def shared_name(job: str) -> str:
    """Return how MPICH names a job's shared memory, before the number of the node."""
    value = _OFFSET
    for byte in job.encode():
        value = (value ^ byte) * _PRIME % 2**32
    return f"mpich_shm_{value:x}"


def _remove_if_left(path: Path) -> None:
    import fcntl  # not on Windows, where there is no such folder

    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # one rank at a time
        found = os.fstat(file.fileno())
        is_old = time.time() - found.st_mtime > _YOUNG_SECONDS
        # by the name there may be the file of a rank that has started MPI since
        if is_old and path.stat().st_ino == found.st_ino and not _is_mapped(path):
            path.unlink()


def _is_mapped(path: Path) -> bool:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if str(path) in maps.read_text(errors="replace"):
                return True
        except OSError:
            continue  # it has ended, or it is somebody else's
    return False
