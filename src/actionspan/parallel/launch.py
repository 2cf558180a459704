"""How a process becomes a rank: MPI started with care, and errors that all ranks share."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from actionspan.errors import InputError
from actionspan.jobs import launcher
from actionspan.jobs.progress import doing
from actionspan.lazy import needed
from actionspan.parallel.communicator import Communicator, Patience
from actionspan.parallel.settings import ExchangeName, processes

Result = TypeVar("Result")

# With more ranks than cores MPICH, like `communicator.wait`, must give the core up while it waits.
POLITE = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "true",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1",
}


def world() -> Communicator:
    """Start MPI if needed and return `MPI.COMM_WORLD`, or the ranks that torchrun started.

    Raises:
        InputError: mpi4py is missing, its MPI does not allow calls from several threads, which
            the watchdog and overlap make, or the launcher belongs to a different MPI.
    """
    doing("starting MPI")
    launcher.remember()
    if launcher.by_torchrun():
        from actionspan.parallel.communicator import TorchrunCommunicator

        ranks = TorchrunCommunicator()
        _name_rank_of_failures(ranks.Get_rank(), ranks.Get_size())
        return cast(Communicator, ranks)
    if launcher.crowded():
        Patience.seconds = 5e-5
        for name, value in POLITE.items():
            os.environ.setdefault(name, value)
    remove_leftovers()
    MPI = needed("mpi4py.MPI", "mpi")

    library = MPI.Get_library_version().splitlines()[0].strip("\0 ")
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise InputError(f"{library}: it does not offer MPI_THREAD_MULTIPLE, which is needed")
    if launcher.launched() > MPI.COMM_WORLD.Get_size():
        raise InputError(
            f"the launcher started {launcher.launched()} processes, but mpi4py's MPI ({library}) "
            "does not see them: use the mpiexec of the same MPI (config.yaml: mpi.launcher)"
        )
    _name_rank_of_failures(MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size())
    here = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    launcher.from_mpi = here.Get_rank(), here.Get_size()
    here.Free()
    return cast(Communicator, MPI.COMM_WORLD)


def join(
    step: str, exchange: ExchangeName, flag: str, workers: int, *, in_process: bool = False
) -> Communicator | None:
    """Join the processes that train together; return None where this one trains alone.

    Args:
        step: Its words on the command line, e.g. `temporal train`.
        exchange: How workers are joined.
        flag: Name of their number on the command line.
        workers: How many there are.
        in_process: Whether one process may hold all workers of aavg.

    Raises:
        InputError: More or fewer processes were started than are needed.
    """
    local = ("none", "aavg") if in_process else ("none",)
    ranked = launcher.launched() > 1 or (in_process and launcher.is_rank())
    comm = world() if ranked or exchange not in local else None
    started = comm.Get_size() if comm is not None else 1
    try:
        needed = processes(exchange, workers)
    except ValueError as error:
        raise InputError(str(error)) from None
    if started == 1 and exchange in local:
        return None
    if started != needed:
        raise InputError(
            f"--exchange {exchange} {flag} {workers}: {needed} "
            f"process{'es are' if needed > 1 else ' is'} needed, {started} started: "
            f"{launcher.command(needed)} -m actionspan {step} …"
        )
    return comm


@cache
def _name_rank_of_failures(rank: int, ranks: int) -> None:
    """Print the rank before the traceback of a failure: MPI's own message may be lost."""
    show = sys.excepthook

    def show_with_rank(kind: Any, error: Any, trace: Any) -> None:
        print(f"rank {rank} of {ranks} failed:", file=sys.stderr, flush=True)
        show(kind, error, trace)

    if ranks > 1:
        sys.excepthook = show_with_rank


def root_first(
    comm: Communicator,
    function: Callable[[], Result],
    waiting: AbstractContextManager[Any] | None = None,
) -> Result:
    """Run `function` on rank 0, then on the others, so that an error is reported once.

    An exception on rank 0 is raised there; the others exit silently with status 0, so that the
    job ends when rank 0 has reported the error. `waiting` is entered while they wait for rank 0.
    """
    error: BaseException | None = None
    if comm.Get_rank() == 0:
        try:
            result = function()
        except Exception as raised:
            error = raised
    with waiting or nullcontext():
        failed = comm.bcast(error is not None, root=0)
    if failed:
        if error is not None:
            raise error
        sys.exit(0)
    return result if comm.Get_rank() == 0 else function()


SHARED_MEMORY = Path("/dev/shm")
_PATTERN = "mpich_shm_*"
_YOUNG_SECONDS = 10.0  # ranks of one start begin well within this


def remove_leftovers(folder: Path = SHARED_MEMORY) -> None:
    """Remove the shared memory that killed ranks left: files of MPICH that no process has mapped.

    They take 1 to 4 MB each, and are a trap for the job's next start: MPICH names the file that the
    ranks of a node share by a hash of PMI's job, which under SLURM is `{job}.{step}`, and takes a
    file of that name as it finds it (MPICH 5.0). A job that SLURM queues again keeps its number, so
    its ranks would meet in the state of the killed ones, and some wait in MPI_Init for ever.

    Any number of ranks may call it at once, each before it starts MPI itself.
    """
    paths = [path for path in folder.glob(_PATTERN) if _is_old(path)]
    mapped = _mapped(folder) if paths else set()
    for path in paths:
        if str(path) not in mapped:
            _remove(path)


def _is_old(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False  # another rank was faster
    return status.st_uid == os.getuid() and time.time() - status.st_mtime > _YOUNG_SECONDS


def _mapped(folder: Path) -> set[str]:
    """Return the files of a folder that any process has in its memory, as far as can be seen."""
    mapped = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            lines = maps.read_text(errors="replace").splitlines()
        except OSError:
            continue  # it has ended, or it is somebody else's
        mapped |= {line.partition("/")[2] for line in lines if f" {folder}/" in line}
    return {f"/{path}" for path in mapped}


def _remove(path: Path) -> None:
    import fcntl  # not on Windows, which has no such folder

    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # one rank at a time
            # by the name there may be the file of a rank that has started MPI since
            if _is_old(path) and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                path.unlink()
    except OSError:
        return  # another rank was faster
