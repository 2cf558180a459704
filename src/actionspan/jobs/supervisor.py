"""A supervisor for each job: it reports how the job was killed, and stops it when the run ends.

A job of Snakemake, and a rank of several, forks at its start: the child works, this process waits.
It outlives the child, so it can name the signal that killed it, and its work. It kills the
child when Snakemake, the job's shell or the launcher is gone, and leaves only after all that the
child started: a job that seems to be over writes no more. A command typed by hand is left alone.
"""

import contextlib
import ctypes
import hashlib
import mmap
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, NoReturn

from actionspan.jobs import launcher
from actionspan.jobs.progress import doing, last_activity, make_board
from actionspan.storage.process import Process, ancestors, hold_file

RUN = "ACTIONSPAN_RUN"  # in the environment of a job: the Snakemake that started it
WRITERS = Path(".snakemake/writers")  # a locked file for each job at work
ENDED = 75  # exit status: a failure that is over when the job is started again
_LOOK_SECONDS = 0.3
GRACE_SECONDS = 3.0  # for the child's own processes, e.g. to free shared memory
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux' prctl(2)


def supervise(words: Sequence[str]) -> None:
    """Return in a child that does the work, if this is a job or a rank; otherwise just return.

    `words` are the command's, with its name and outputs. Two jobs of Snakemake never make the
    same files: the later waits, also on another machine where the file system has locks.
    """
    # 1. what needs no supervisor
    run = Process.read(os.environ.get(RUN, ""))
    run = run if run is not None and run.in_same_job() else None
    ranked = launcher.launched() > 1
    if launcher.supervised or (run is None and not ranked):
        return
    if "mpi4py.MPI" in sys.modules or threading.active_count() > 1:
        return  # too late to fork
    # 2. its turn, before anything is written
    above = list(_above(run))
    try:
        held = _sole_writer(words, above) if run is not None and launcher.rank() == 0 else None
    except KeyboardInterrupt:
        sys.exit(130)
    # 3. two processes: the child works, this one waits
    board = make_board()
    doing("starting" if ranked else "")
    if sys.platform == "linux":  # the child's children come to this process when it ends
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    launcher.supervised, supervisor = os.getppid(), os.getpid()
    child = os.fork()
    if child == 0:
        threading.Thread(target=_end_without, args=(supervisor, held), daemon=True).start()
        return
    name = f"rank {launcher.rank()}" if ranked else " ".join(words[:2])
    _Supervisor(name, words[0] if words else "", child, above, board).wait(held)


def _above(run: Process | None) -> Iterator[Process]:
    """Yield the processes that the work is for: when one is gone, nobody needs it any more."""
    pids = [os.getppid()]
    if run is not None:
        line = list(ancestors(os.getpid()))
        # daemons of a cluster, which have no parent, may come between ranks and their run
        pids = line[: line.index(run.pid)] if run.pid in line else pids
        yield run
    yield from filter(None, map(Process.of, pids))


def _gone(above: Sequence[Process]) -> Process | None:
    return next((process for process in above if process.alive() is False), None)


def _sole_writer(words: Sequence[str], above: Sequence[Process]) -> tuple[Path, IO[bytes]] | None:
    """Wait until no other job makes the same files; return the file that is held, if any."""
    # --out or --out-csv, but not --output-scale
    out = next((path for flag, path in pairwise(words) if f"{flag}-".startswith("--out-")), None)
    if out is None or not WRITERS.parent.is_dir():
        return None
    key = f"{' '.join(words[:2])} {Path(out).absolute()}"
    path = WRITERS / hashlib.sha256(key.encode()).hexdigest()[:16]
    reported = False
    while True:
        try:
            WRITERS.mkdir(exist_ok=True)
            file = hold_file(path, f"pid {os.getpid()} on {socket.gethostname()}")
        except BlockingIOError as holder:
            if not reported:
                line = f"actionspan {words[0]}: {out}: waiting for {holder}, which makes it too"
                print(line, file=sys.stderr, flush=True)
            if _gone(above):
                sys.exit(ENDED)
            reported = True
            time.sleep(_LOOK_SECONDS)
        except OSError:  # no right to write there
            return None
        else:
            if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                return path, file  # held as long as this process or its child lives
            file.close()  # its last owner has just removed it


def _end_without(supervisor: int, _: object) -> None:
    """End when the supervisor has ended; until then the file that it holds is held here too."""
    while os.getppid() == supervisor:
        time.sleep(_LOOK_SECONDS)
    os._exit(ENDED)


class _Supervisor:
    """The parent: waits for the child, forwards signals, reports how it ended."""

    def __init__(
        self, name: str, command: str, child: int, above: Sequence[Process], board: mmap.mmap
    ) -> None:
        self.name, self.command, self.child = name, command, child
        self.above, self.board = above, board
        self.forwarded: set[int] = set()
        self.woken, wake = os.pipe()
        for end in (self.woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the child too
        for number in _FORWARDED:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._forward)

    def _forward(self, number: int, frame: object) -> None:
        self.forwarded.add(number)
        os.kill(self.child, number)

    def wait(self, held: tuple[Path, IO[bytes]] | None) -> NoReturn:
        """Wait for the end of the child and end like it."""
        status = self._status()
        self._end_the_rest()
        if held is not None:
            held[0].unlink(missing_ok=True)
        if not os.WIFSIGNALED(status):
            os._exit(os.waitstatus_to_exitcode(status))
        number = os.WTERMSIG(status)
        if number not in self.forwarded:
            what = last_activity(self.board)
            self._report(
                f"was killed by signal {number} ({signal.strsignal(number)})"
                f"{' while ' if what else ''}{what}; run the same command again"
                f"{'; perhaps it lacked memory' if number == signal.SIGKILL else ''}"
            )
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child's is the one to keep
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)

    def _report(self, what: str) -> None:
        host = socket.gethostname()
        line = f"actionspan {self.command}: {self.name} (pid {self.child} on {host}) {what}"
        with contextlib.suppress(OSError):  # perhaps nobody listens
            print(line, file=sys.stderr, flush=True)

    def _status(self) -> int:
        while True:
            ended, status = os.waitpid(self.child, os.WNOHANG)
            if ended:
                return status
            if gone := _gone(self.above):
                self._report(f"ends: process {gone.pid}, which started it, is gone")
                os.kill(self.child, signal.SIGKILL)
                self._end_the_rest()
                os._exit(ENDED)
            select.select([self.woken], [], [], _LOOK_SECONDS)
            with contextlib.suppress(BlockingIOError):
                os.read(self.woken, 4096)

    def _end_the_rest(self) -> None:
        """Wait for all descendants, and kill those that do not end by themselves."""
        deadline = time.monotonic() + GRACE_SECONDS
        while True:
            try:
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            except ChildProcessError:
                return
            if time.monotonic() > deadline:
                children = Path(f"/proc/self/task/{os.getpid()}/children")
                for pid in children.read_text().split() if children.exists() else ():
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.02)
