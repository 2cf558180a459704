"""Functions and commands run in forks of this process: what became of each, and of its children.

A fork after the imports costs milliseconds, and a crash or a hang ends the fork alone. Needs Linux:
orphans become children of this process, so that none is overlooked.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MEMORY = 4 << 30  # bytes that a fork may take beyond what this process has
SECONDS = 300.0  # after which a fork hangs, on a busy machine too
GRACE = 20.0  # seconds in which the children of an ended process must end too
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_TEXT = 1 << 20  # bytes of its output that count


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What became of a fork.

    Attributes:
        status: Its exit status, or minus the signal that ended it.
        late: It was still running at the time limit.
        left: How many of its children lived on.
        output: Its standard output.
        errors: Its standard error.
        seconds: How long it ran.
    """

    status: int
    late: bool
    left: int
    output: str
    errors: str
    seconds: float


def adopt_orphans() -> None:
    """Make processes that lose their parent children of this one; ignored where that is unknown."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def call(
    function: Callable[[], int],
    folder: Path,
    *,
    seconds: float = SECONDS,
    kill_after: float | None = None,
) -> Ended:
    """Run a function in a fork and wait for its end and that of its children.

    Args:
        function: Returns the exit status.
        folder: The fork's working directory.
        seconds: The time limit; a fork that is later is killed.
        kill_after: SIGKILL it after so many seconds, as a person or the system might.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # pipes, since a limit on the size of files holds for files of messages too
    output, errors = _Pipe(), _Pipe()
    known = set(children())
    began = time.monotonic()
    child = os.fork()
    if not child:
        _be_child(function, folder, output.end, errors.end)
    late = not _read_until_end(
        child, (output, errors), seconds if kill_after is None else kill_after
    )
    if late:
        os.kill(child, signal.SIGKILL)
    _, ended = os.waitpid(child, 0)
    took = time.monotonic() - began
    return Ended(
        status=os.waitstatus_to_exitcode(ended),
        late=late and kill_after is None,
        left=end_orphans(known),
        output=output.close(),
        errors=errors.close(),
        seconds=took,
    )


class _Pipe:
    """A pipe, of whose text the last part is kept."""

    def __init__(self) -> None:
        self.source, self.end = os.pipe()
        os.set_blocking(self.source, False)
        self._content = b""

    def read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self.source, 1 << 16):
                self._content = (self._content + block)[-_TEXT:]

    def close(self) -> str:
        self.read()
        os.close(self.source)
        os.close(self.end)
        return self._content.decode("utf-8", "backslashreplace")


def _read_until_end(pid: int, pipes: Sequence[_Pipe], seconds: float) -> bool:
    """Read what a process writes until it has ended; return whether it has in time."""
    handle, deadline = os.pidfd_open(pid), time.monotonic() + seconds
    try:
        while (remaining := deadline - time.monotonic()) > 0:
            waiting = [handle, *(pipe.source for pipe in pipes)]
            ready = select.select(waiting, [], [], remaining)[0]
            for pipe in pipes:
                pipe.read()
            if handle in ready:
                return True
        return False
    finally:
        os.close(handle)


def command(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs `actionspan WORDS`."""

    def run() -> int:
        from actionspan.cli import main

        return main(words)

    return run


def _be_child(function: Callable[[], int], folder: Path, output: int, errors: int) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        # as Python opens them, whatever this process (pytest, say) has in their places
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        os.chdir(folder)
        status = function()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # a fork must never go on as its parent
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def end_orphans(known: Collection[int] = ()) -> int:
    """Wait for the end of this process's children but the known; kill and count those that stay."""
    deadline = time.monotonic() + GRACE
    while (pids := set(children()).difference(known)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return len(pids)


def children() -> Iterator[int]:
    """Yield the children of this process that live; the others are buried."""
    for pid in map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                yield pid
