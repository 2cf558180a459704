"""Shared memory that killed ranks left: memory of the machine, and a trap for the job's next start.

The ranks of a node share a file that MPICH names by a hash of PMI's job, which under SLURM is
`{job}.{step}`, and MPICH 5.0 takes a file of that name as it finds it. A job that SLURM queues
again has the number that it had, so that its ranks meet in the state of those that were killed: one
or the other waits in MPI_Init without end. mpiexec gives a new name each time, so that there the
files gather, 1 to 4 MB of each run that was killed.
"""

import os
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_PATTERN = "mpich_shm_*"
_YOUNG_SECONDS = 10.0  # ranks of one start begin well within this


def remove_leftovers(folder: Path = SHARED_MEMORY) -> None:
    """Remove one's own files of MPICH that no process has mapped; to be called before MPI starts.

    Any number of ranks may call it at once, each before it starts MPI itself.

    Args:
        folder: Where shared memory is.
    """
    paths = [path for path in folder.glob(_PATTERN) if _is_old(path)]
    mapped = _mapped(folder) if paths else set()
    for path in paths:
        if str(path) not in mapped:
            _remove(path)


def _is_old(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False  # another rank was faster
    return found.st_uid == os.getuid() and time.time() - found.st_mtime > _YOUNG_SECONDS


def _mapped(folder: Path) -> set[str]:
    """Return the files of a folder that any process has in its memory, as far as can be seen."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            lines = maps.read_text(errors="replace").splitlines()
        except OSError:
            continue  # it has ended, or it is somebody else's
        found |= {line.partition("/")[2] for line in lines if f" {folder}/" in line}
    return {f"/{path}" for path in found}


def _remove(path: Path) -> None:
    import fcntl  # not on Windows, where there is no such folder

    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # one rank at a time
            # by the name there may be the file of a rank that has started MPI since
            if _is_old(path) and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                path.unlink()
    except OSError:
        return  # another rank was faster
