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
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MEMORY = 4 << 30  # bytes that a fork may take beyond what this process has
SECONDS = 180.0  # after which a fork hangs
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
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        sys.stdout.flush()
        sys.stderr.flush()
        began = time.monotonic()
        child = os.fork()
        if not child:
            _be_child(function, folder, output, errors)
        limit = seconds if kill_after is None else kill_after
        late = not wait_for(child, limit)
        if late:
            os.kill(child, signal.SIGKILL)
        _, ended = os.waitpid(child, 0)
        took = time.monotonic() - began
        return Ended(
            status=os.waitstatus_to_exitcode(ended),
            late=late and kill_after is None,
            left=end_orphans(),
            output=_text(output),
            errors=_text(errors),
            seconds=took,
        )


def command(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs `actionspan WORDS`."""

    def run() -> int:
        from actionspan.cli import main

        return main(words)

    return run


def _be_child(
    function: Callable[[], int], folder: Path, output: IO[bytes], errors: IO[bytes]
) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        for file, stream in ((output, 1), (errors, 2)):
            os.dup2(file.fileno(), stream)
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


def wait_for(pid: int, seconds: float) -> bool:
    """Wait until a process has ended; return whether it has within so many seconds."""
    handle = os.pidfd_open(pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def end_orphans(seconds: float = GRACE) -> int:
    """Wait for all children of this process to end; kill the others and return their number."""
    deadline = time.monotonic() + seconds
    while (pids := list(children())) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return len(pids)


def children() -> Iterator[int]:
    """Yield the children of this process that live; the others are buried."""
    for pid in map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                yield pid


def _text(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _TEXT, 0))
    return file.read().decode("utf-8", "backslashreplace")
