"""Work on items in separate processes: a crash on one never ends the work on the others.

A process is kept for further items, as encoders take seconds to load, and replaced when it dies.
"""

import multiprocessing
import os
import re
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from actionspan.errors import InputError, JobError, lacks_memory, printable
from actionspan.storage.text import NO_ROOM

Work = Callable[[Any], Any]
Prepare = Callable[[], Any]

_TICK = 1.0  # seconds: how often silence is counted
_START = 60.0  # seconds that a process may take to start, whatever the limit of its work
_PATIENCE = 10.0  # seconds for a killed process to be gone: one that waits for a disk may not be
# Signals by which people and schedulers end a job: the item is not to blame.
_ENDING = tuple(getattr(signal, f"SIG{name}", 0) for name in ("TERM", "INT", "HUP", "QUIT"))
# HDF5 has the number in its text alone, our own messages the words
_NO_ROOM_TEXT = re.compile(
    rf"errno = ({'|'.join(map(str, NO_ROOM))})\b|{'|'.join(map(re.escape, NO_ROOM.values()))}"
)
_PACKAGE = Path(__file__).parents[1]


class Outcome(NamedTuple):
    """What became of an item."""

    value: Any = None  # returned by the work
    reason: str = ""  # why it failed
    passing: bool = False  # perhaps for the machine's state: a crash, a stall, too little memory
    killed: bool = False  # by SIGKILL, which comes from outside


class _Message(NamedTuple):
    what: Any  # a message from work in progress


def work_apart(
    work: Work,
    items: Iterable[Any],
    *,
    prepare: Prepare | None = None,
    processes: int = 1,
    stall_seconds: float = 0.0,
    on_message: Callable[[Any], None] | None = None,
) -> Generator[tuple[int, Outcome], None, None]:
    """Yield the index of each item and what became of it, as they are done.

    A failure that may come from the machine's state is retried in a fresh process if the first had
    worked on other items before, so that no item pays for another. An item is retried once if its
    process was killed, by a person or as memory ran out.

    Args:
        work: A function of an item, importable by name; its result must pickle.
        items: They must pickle. Each is taken when a process is free, so that an iterator can
            choose it by the outcomes so far.
        prepare: Called first in each process; its exceptions end the job.
        processes: How many items are worked on at once.
        stall_seconds: Work is ended after so long without `still_working`; 0: never. Time in which
            this process was suspended does not count.
        on_message: Called with the messages of `still_working`.

    Raises:
        JobError: `prepare` failed, the disk is full, or somebody ended a process.
    """
    waiting = enumerate(items)
    killed: set[int] = set()
    workers: list[_Worker] = []
    try:
        while True:
            # 1. work for each process that is free
            idle = [worker for worker in workers if worker.task is None]
            while (idle or len(workers) < processes) and (next_task := next(waiting, None)):
                if not idle:
                    idle = [_Worker(work, prepare)]
                    workers += idle
                idle.pop().give(next_task)
            busy = [worker for worker in workers if worker.task is not None]
            if not busy:
                return
            # 2. their reports
            began = time.monotonic()
            readable = wait([worker.pipe for worker in busy], _TICK if stall_seconds else None)
            passed = min(time.monotonic() - began, 2 * _TICK)
            for worker in busy:
                if worker.pipe in readable:
                    outcome = worker.receive(on_message)
                else:
                    outcome = worker.stalled(passed, stall_seconds)
                if outcome is None or worker.task is None:
                    continue
                # 3. an outcome, or a second try in a fresh process
                task, worker.task = worker.task, None
                if outcome.passing:
                    worker.stop()
                    fresh = workers[workers.index(worker)] = _Worker(work, prepare)
                    if worker.finished or (outcome.killed and task[0] not in killed):
                        if outcome.killed:
                            killed.add(task[0])
                        fresh.give(task)
                        continue
                worker.finished += 1
                yield task[0], outcome
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process and its current task."""

    def __init__(self, work: Work, prepare: Prepare | None) -> None:
        context = multiprocessing.get_context("spawn")
        try:
            self.pipe, theirs = context.Pipe()
            given = (theirs, work, prepare, Path.cwd())
            self.process = context.Process(target=_serve, args=given, daemon=True)
            with _uninterrupted():
                self.process.start()
        except OSError as error:
            raise JobError(f"no process can be started here: {error.strerror}") from None
        theirs.close()
        self.task: tuple[int, Any] | None = None
        self.finished = 0  # items
        self.quiet = 0.0  # seconds since its last message
        self.ready = False

    def give(self, task: tuple[int, Any]) -> None:
        """Start a task, an index and an item."""
        self.task, self.quiet = task, 0.0
        with suppress(BrokenPipeError):  # it died: its pipe reports it
            self.pipe.send(task[1])

    def receive(self, on_message: Callable[[Any], None] | None) -> Outcome | None:
        """Return the outcome of its task, None while that runs; pass messages on."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            return self._crashed()
        self.quiet, self.ready = 0.0, True
        if isinstance(message, JobError):
            raise message
        if isinstance(message, _Message) and on_message:
            on_message(message.what)
        return message if isinstance(message, Outcome) else None

    def stalled(self, seconds: float, most: float) -> Outcome | None:
        """Add seconds of silence; return the outcome of a stall if they are too many."""
        self.quiet += seconds
        most = most if self.ready or not most else max(most, _START)
        if not 0 < most < self.quiet:
            return None
        if not self.ready:
            raise JobError(f"the process that does the work is not ready after {most:g} s")
        return Outcome(None, f"no progress in {most:g} s", True)

    def stop(self) -> None:
        """End it, whatever it is doing."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join(_PATIENCE)
        self.pipe.close()

    def _crashed(self) -> Outcome:
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        how, killed = f"ended with status {code}", code == -signal.SIGKILL
        if code is not None and code < 0:
            how = f"killed by {signal.Signals(-code).name}"
            if -code in _ENDING:
                raise JobError(f"{how}; run it again to resume")
            how += ", perhaps as memory ran out" * killed
        if not self.ready:
            raise JobError(f"the process that does the work cannot start: it was {how}")
        return Outcome(None, f"the work on it crashed: {how}", True, killed)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Start a process that Ctrl-C does not reach: while it imports it would print a traceback."""
    resource_tracker.ensure_running()  # else it starts with the process, and lifts the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_pipe: Connection | None = None  # in a worker: to the process that waits for it
_reported = 0.0
_reporting = threading.Lock()  # threads of a worker share the pipe


def still_working(message: Any = None) -> None:
    """Report progress, so that the work is not taken for a stall; cheap enough for each frame.

    `message`, if any, is for the process that waits.
    """
    global _reported
    with _reporting:
        now = time.monotonic()
        if _pipe is not None and (message is not None or now - _reported >= _TICK):
            _reported = now
            _pipe.send(None if message is None else _Message(message))


def _serve(pipe: Connection, work: Work, prepare: Prepare | None, place: Path) -> None:
    """Work on what comes through a pipe until it is closed."""
    global _pipe
    os.chdir(place)  # multiprocessing begins where the first process began
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _pipe = pipe
    try:
        if prepare:
            prepare()
    except Exception as error:
        pipe.send(unready(error))
        return
    with suppress(EOFError, ConnectionError):  # nobody waits any more
        pipe.send(None)
        while True:
            pipe.send(_attempt(work, pipe.recv()))


def unready(error: BaseException) -> JobError:
    """Return what ends the job where a process cannot be prepared for it."""
    if isinstance(error, InputError):
        return JobError(str(error))
    return JobError("too little memory to start" if lacks_memory(error) else error_line(error))


def _attempt(work: Work, item: Any) -> Outcome | JobError:
    try:
        return Outcome(work(item))
    except JobError as error:
        return error
    except BaseException as error:
        if is_disk_full(error):
            return JobError(str(error) if isinstance(error, InputError) else error_line(error))
        if isinstance(error, InputError):
            return Outcome(None, str(error))
        if lacks_memory(error):
            return Outcome(None, "too little memory to work on it", True)
        return Outcome(None, error_line(error))


def worker_pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool of fresh processes that end with this process, even when it is killed.

    Workers of a killed job would otherwise continue, hold memory, and write to the files of the
    job's next start.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent)


def end_with_parent() -> None:
    """End this process when its parent ends, whatever it is doing."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error, or one that it came from, reports that the disk is full."""
    if isinstance(error, OSError) and error.errno in NO_ROOM or _NO_ROOM_TEXT.search(str(error)):
        return True
    return error.__context__ is not None and is_disk_full(error.__context__)


def error_line(error: BaseException) -> str:
    """Return an unforeseen error on one line, with its place in the package."""
    lines = str(error).splitlines() or [""]
    text = printable(lines[0])[:300]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(_PACKAGE) and path.parent != Path(__file__).parent:
            return f"{type(error).__name__}: {text} ({path.relative_to(_PACKAGE)}:{frame.lineno})"
    return f"{type(error).__name__}: {text}"
