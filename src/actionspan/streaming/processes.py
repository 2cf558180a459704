"""A process for each stage: for stages of a few milliseconds, and for those that draw numbers."""

import multiprocessing
import os
import socket
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.streaming.child import (
    NEIGHBOUR_GONE,
    Job,
    counts_in,
    forms_of,
    pack,
    received,
    send,
    serve,
)
from actionspan.streaming.errors import (
    UNGUARDED,
    Deadline,
    LinkClosedError,
    StageError,
    StallError,
    death,
    interrupts_held,
)
from actionspan.streaming.executors import Runs
from actionspan.streaming.messages import Message, Reply
from actionspan.streaming.sockets import (
    SharedBlock,
    SocketInlet,
    SocketOutlet,
    link,
    module_tensors,
    share,
    unshare,
)
from actionspan.streaming.stage import Options, Part, parts_of
from actionspan.streaming.worker import COUNTS

# Imported once, by the server that processes are forked from; the first optimiser would import
# the last, in each process for itself.
_PRELOADED = ["actionspan.streaming.child", "torch._dynamo"]
_NAME = "stage "
_START_SECONDS = 120.0
_CLOSE_SECONDS = 1.0  # for a polite end; then processes are killed
_ROOT_SECONDS = 0.5  # to see which of several processes ended first


class ProcessExecutor(Runs):
    """Runs each stage in its own process; the caller's modules stay the live ones.

    Raises:
        ValueError: A module, loss or optimiser cannot be sent to another process.
    """

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        here: Any = multiprocessing.current_process()
        if here.name.startswith(_NAME) and getattr(here, "_inheriting", False):
            # a stage's process that imports the program, which would build all stages again
            os._exit(UNGUARDED)
        count = len(parts)
        self._modules = [part.module for part in parts]
        self._learning = parts[0].learning is not None
        self._deadline, self._record = Deadline(options.stall_seconds), options.record
        names = [f"{_NAME}{index + 1} of {count}" for index in range(count)]
        packed = [
            pack(part.module, part.learning, name) for part, name in zip(parts, names, strict=True)
        ]
        self._replies: deque[Reply | None] = deque()
        self._pending: list[tuple[SocketOutlet, deque[Message | None]]] = []
        self._answers: list[deque[Any]] = [deque() for _ in parts]
        self._failure: StageError | None = None
        block = SharedBlock(8 * len(COUNTS) * count)
        self._counts = counts_in(block, count)
        self._counts[:, COUNTS.index("sample")] = -1
        ends = self._open_links(count)
        self._commands: list[Connection] = []
        self._processes: list[Any] = []
        self._shared: list[list[Tensor]] = []
        try:
            with interrupts_held():
                for part, name, code, own in zip(parts, names, packed, ends, strict=True):
                    self._start(part, name, code, own, block, options)
            block.close()
            self._deadline = Deadline(_START_SECONDS)
            for answers in self._answers:
                self._wait_for(answers)
                answers.popleft()
            self._deadline = Deadline(options.stall_seconds)
        except BaseException:
            self.close(failed=True)
            raise

    def _start(
        self,
        part: Part,
        name: str,
        packed: bytes,
        ends: dict[str, socket.socket],
        counts: SharedBlock,
        options: Options,
    ) -> None:
        """Start the process of a stage, and close what only it needs."""
        tensors = module_tensors(part.module)
        ours, theirs = multiprocessing.Pipe()
        shared = share(tensors)
        self._shared.append(tensors)
        kept = (torch.get_default_dtype(), torch.get_deterministic_debug_mode())
        forms = forms_of(tensors)
        job = Job(part.place, packed, shared, forms, counts, ends, theirs, options, kept)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        process = context.Process(target=serve, args=(job,), name=name, daemon=True)
        process.start()
        self._processes.append(process)
        self._commands.append(ours)
        for end in ends.values():
            end.close()
        theirs.close()
        shared.close()

    def _open_links(self, count: int) -> list[dict[str, socket.socket]]:
        """Return the ends that each stage gets, and keep ours."""
        ends: list[dict[str, socket.socket]] = [{} for _ in range(count)]
        first, ends[0]["left"] = link()
        for index in range(count - 1):
            ends[index]["right"], ends[index + 1]["left"] = link()
            if self._learning:
                ends[index + 1]["back"], ends[index]["signals"] = link()
        ends[-1]["right"], answers = link()
        self._samples, self._inlet = SocketOutlet(first), SocketInlet(answers)
        self._targets: SocketOutlet | None = None
        if self._learning:
            given, ends[-1]["targets"] = link()
            self._targets = SocketOutlet(given)
        outlets = [self._samples] + ([self._targets] if self._targets else [])
        self._pending = [(outlet, deque()) for outlet in outlets]
        return ends

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        self._deadline.restart()
        for (_, waiting), message in zip(self._pending, (arriving, target), strict=False):
            waiting.append(message)
        for index in range(len(self._modules)):
            self._tell(index, ("step", None))
        self._flush()

    def reply(self) -> Reply | None:
        self._wait_for(self._replies)
        return self._replies.popleft()

    def ready(self, timeout: float | None) -> bool:
        until = time.monotonic() + (timeout or 0.0)
        while not self._replies:
            left = until - time.monotonic()
            self._receive(max(0.0, left))
            if not self._replies and left <= 0:
                self._left()
                return False
        return True

    def train(self, stage: int, training: bool) -> None:
        module = self._modules[stage]
        if isinstance(module, nn.Module):
            module.train(training)
        self._ask(stage, "train", training)

    def states(self) -> list[dict[str, Any]]:
        return self._ask_all("state")

    def load(self, states: list[dict[str, Any]]) -> None:
        for index, state in enumerate(states):
            self._ask(index, "load", state)
            for inner, training in zip(
                parts_of(self._modules[index]), state["training"], strict=True
            ):
                inner.training = training

    def settle(self) -> None:
        self._ask_all("settle")

    def reports(self) -> list[dict[str, Any]]:
        events = self._ask_all("events") if self._record else [[] for _ in self._modules]
        return [
            {
                name: value if name.endswith("seconds") else int(value)
                for name, value in zip(COUNTS, row, strict=True)
            }
            | {"events": noted}
            for row, noted in zip(self._counts.tolist(), events, strict=True)
        ]

    def processes(self) -> list[int]:
        return [process.pid for process in self._processes if process.pid]

    def close(self, *, failed: bool = False) -> None:
        ends: list[Any] = [self._samples.end, self._inlet.end]
        ends += [self._targets.end] if self._targets else []
        if failed:
            for end in (*ends, *self._commands):
                end.close()  # at the latest when it waits, a stage sees that nobody is there
        else:
            for index in range(len(self._processes)):
                self._tell(index, ("stop", None), quiet=True)
        until = time.monotonic() + _CLOSE_SECONDS
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))
        for process in self._processes:
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        for end in (*ends, *self._commands):
            end.close()
        for tensors in self._shared:
            unshare(tensors)
        self._processes, self._commands, self._shared = [], [], []

    def _ask(self, stage: int, command: str, given: Any = None) -> Any:
        self._tell(stage, (command, given))
        self._wait_for(self._answers[stage])
        return self._answers[stage].popleft()

    def _ask_all(self, command: str) -> list[Any]:
        for index in range(len(self._modules)):
            self._tell(index, (command, None))
        for answers in self._answers:
            self._wait_for(answers)
        return [answers.popleft() for answers in self._answers]

    def _tell(self, stage: int, command: tuple[str, Any], *, quiet: bool = False) -> None:
        try:
            send(self._commands[stage], command)
        except OSError:
            if not quiet:
                self._find_dead()

    def _wait_for(self, queue: "deque[Any]") -> None:
        """Wait until a queue has an item, as long as stages are alive."""
        while not queue:
            self._receive(min(1.0, self._left()))

    def _left(self) -> float:
        """Return the seconds until the deadline; raise StallError once it has passed."""
        left = self._deadline.left(self._counts.flatten().tolist())
        if left == 0:
            steps = self._counts[:, 0].tolist()
            what = f"no sign of life for {self._deadline.seconds:g} s"
            raise self._error(StallError, steps.index(min(steps)), what)
        return left

    def _receive(self, timeout: float) -> None:
        """Wait for whatever comes first, and take it in."""
        if self._failure is not None:
            raise self._failure
        self._flush()
        waiting: list[Any] = [self._inlet.end, *self._commands]
        waiting += [process.sentinel for process in self._processes]
        waiting += [outlet.end for outlet, messages in self._pending if messages]
        ready = wait(waiting, timeout)
        for index, commands in enumerate(self._commands):
            if commands in ready:
                self._take(index)
        if self._inlet.end in ready:
            try:
                self._replies.append(self._reply())
            except LinkClosedError:
                self._find_dead()
        elif any(process.sentinel in ready for process in self._processes):
            self._find_dead()
        self._flush()

    def _reply(self) -> Reply | None:
        message = self._inlet.receive()
        if message is None:
            return None
        *output, loss, (alone, known) = message.tensors
        answer = Message(message.sample, tuple(output), bool(alone))
        return Reply(answer, loss if known else None)

    def _take(self, index: int) -> None:
        """Take in what the process of a stage says."""
        try:
            kind, value = received(self._commands[index])
        except (EOFError, OSError):
            self._find_dead()
            return
        if kind == "failed":
            self._fail(index, *value)
        self._answers[index].append(value)

    def _fail(self, index: int, sample: int, what: str, trace: str) -> None:
        failure = StageError(index, len(self._modules), sample, what)
        failure.add_note(trace)
        self._failure = failure
        raise failure

    def _find_dead(self) -> None:
        """Raise the failure of the stage that ended first; others ended because it did."""
        until = time.monotonic() + _ROOT_SECONDS
        while time.monotonic() < until:
            for index, (process, commands) in enumerate(
                zip(self._processes, self._commands, strict=True)
            ):
                try:
                    while commands.poll():
                        kind, value = received(commands)
                        if kind == "failed":
                            self._fail(index, *value)
                except (EOFError, OSError):
                    pass
                if process.exitcode not in (None, NEIGHBOUR_GONE):
                    raise self._error(StageError, index, death(process.exitcode)) from None
            time.sleep(0.005)
        raise self._error(StageError, 0, "its process ended")

    def _error(self, kind: type[StageError], stage: int, what: str) -> StageError:
        self._failure = kind(stage, len(self._modules), self._sample_of(stage), what)
        return self._failure

    def _sample_of(self, stage: int) -> int:
        """Return the sample that a stage holds, or held last."""
        return int(self._counts[stage, COUNTS.index("sample")])

    def _flush(self) -> None:
        """Send what has room on its link."""
        try:
            for outlet, waiting in self._pending:
                while waiting and outlet.room():
                    outlet.send(waiting.popleft())
        except LinkClosedError:
            self._find_dead()
