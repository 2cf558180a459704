"""A process for each stage: for stages of a few milliseconds, and for those that draw numbers."""

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.streaming import child, errors, sockets
from actionspan.streaming.messages import Answer, Ends, Message, joined
from actionspan.streaming.stage import COUNTS, Options, Part, parts_of
from actionspan.streaming.worker import WorkerExecutor

# Imported once, by the server that processes are forked from; the first optimiser would import
# the last, in each process for itself.
_PRELOADED = ["actionspan.streaming.child", "torch._dynamo"]
_NAME = "stage "  # as the name of a place begins
_START_SECONDS = 120.0
_CLOSE_SECONDS = 1.0  # for a polite end; then processes are killed
_ROOT_SECONDS = 0.5  # to see which of several processes ended first


class ProcessExecutor(WorkerExecutor):
    """Runs each stage in its own process; the caller's modules stay the live ones.

    Raises:
        ValueError: A module, loss or optimiser cannot be sent to another process.
    """

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        here: Any = multiprocessing.current_process()
        if here.name.startswith(_NAME) and getattr(here, "_inheriting", False):
            # a stage's process that imports the program, which would build all stages again
            os._exit(errors.UNGUARDED)
        super().__init__(parts, options)
        count = self._count
        self._modules, self._record = [part.module for part in parts], options.record
        packed = [child.pack(part) for part in parts]
        block = sockets.SharedBlock(8 * len(COUNTS) * count)
        self._counts = child.stage_counts(block, count)
        self._counts[:, COUNTS.index("sample")] = -1
        ends, self._host = joined(count, self._learning, lambda source, to: sockets.link())
        outlets: list[sockets.SocketOutlet] = list(filter(None, self._host[:2]))  # samples, targets
        self._pending = [(outlet, deque[Message | None]()) for outlet in outlets]
        self._commands: list[Connection] = []
        self._processes: list[Any] = []
        self._shared: list[list[Tensor]] = []
        try:
            with errors.interrupts_held():
                for part, code, own in zip(parts, packed, ends, strict=True):
                    self._start(part, code, own, block, options)
            block.close()
            self._deadline = errors.Deadline(_START_SECONDS)
            for answers in self._answers:
                self._next(answers)
            self._deadline = errors.Deadline(options.stall_seconds)
        except BaseException:
            self.close(failed=True)
            raise

    def _start(
        self, part: Part, packed: bytes, ends: Ends, counts: sockets.SharedBlock, options: Options
    ) -> None:
        """Start the process of a stage, and close what only it needs."""
        tensors = sockets.module_tensors(part.module)
        ours, theirs = multiprocessing.Pipe()
        shared = sockets.share(tensors)
        self._shared.append(tensors)
        kept = (torch.get_default_dtype(), torch.get_deterministic_debug_mode())
        forms = child.forms_of(tensors)
        job = child.Job(part.place, packed, shared, forms, counts, ends, theirs, options, kept)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        name = str(part.place)
        process = context.Process(target=child.serve, args=(job,), name=name, daemon=True)
        process.start()
        self._processes.append(process)
        self._commands.append(ours)
        for end in filter(None, ends):
            end.end.close()
        theirs.close()
        shared.close()

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        self._deadline.restart()
        for (_, waiting), message in zip(self._pending, (arriving, target), strict=False):
            waiting.append(message)
        for index in range(self._count):
            self._command(index, "step")
        self._flush()

    def train(self, stage: int, training: bool) -> None:
        module = self._modules[stage]
        if isinstance(module, nn.Module):
            module.train(training)
        self._ask(stage, "train", training)

    def load(self, states: list[dict[str, Any]]) -> None:
        for index, state in enumerate(states):
            self._ask(index, "load", state)
            parts = parts_of(self._modules[index])
            for inner, training in zip(parts, state["training"], strict=True):
                inner.training = training

    def reports(self) -> list[dict[str, Any]]:
        events = self._ask_all("events") if self._record else [[] for _ in self._modules]
        reports = []
        for row, noted in zip(self._rows(), events, strict=True):
            report: dict[str, Any] = dict(zip(COUNTS, row, strict=True))
            counts = {name: int(value) for name, value in report.items() if "seconds" not in name}
            reports.append(report | counts | {"events": noted})
        return reports

    def processes(self) -> list[int]:
        return [process.pid for process in self._processes if process.pid]

    def close(self, *, failed: bool = False) -> None:
        ends = [end.end for end in self._host if end] + self._commands
        if failed:
            for end in ends:
                end.close()  # at the latest when it waits, a stage sees that nobody is there
        else:
            for commands in self._commands:
                with suppress(OSError):
                    child.send(commands, ("stop", None))
        until = time.monotonic() + _CLOSE_SECONDS
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))
        for process in self._processes:
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        for end in ends:
            end.close()
        for tensors in self._shared:
            sockets.unshare(tensors)
        self._processes, self._commands, self._shared = [], [], []

    def _command(self, stage: int, command: str, given: Any = None) -> None:
        try:
            child.send(self._commands[stage], (command, given))
        except OSError:
            self._find_dead()

    def _rows(self) -> list[list[float]]:
        rows: list[list[float]] = self._counts.tolist()
        return rows

    def _receive(self, timeout: float) -> None:
        if self._failure is not None:
            raise self._failure
        self._flush()
        answers = self._host.answers.end
        waiting: list[Any] = [answers, *self._commands]
        waiting += [process.sentinel for process in self._processes]
        waiting += [outlet.end for outlet, messages in self._pending if messages]
        ready = wait(waiting, timeout)
        for index, commands in enumerate(self._commands):
            if commands in ready:
                self._take(index)
        if answers in ready:
            try:
                self._replies.append(self._reply())
            except errors.LinkClosedError:
                self._find_dead()
        elif any(process.sentinel in ready for process in self._processes):
            self._find_dead()
        self._flush()

    def _reply(self) -> Answer | None:
        message = self._host.answers.receive()
        if message is None:
            return None
        *output, loss, (alone, known) = message.tensors
        answer = Message(message.sample, tuple(output), bool(alone))
        return Answer(answer, loss if known else None)

    def _take(self, index: int) -> None:
        """Take in a report of a stage's process."""
        try:
            kind, value = child.received(self._commands[index])
        except (EOFError, OSError):
            self._find_dead()
            return
        if kind == "failed":
            self._fail(index, *value)
        self._answers[index].append(value)

    def _fail(self, index: int, sample: int, what: str, trace: str) -> None:
        self._failure = errors.StageError(index, self._count, sample, what)
        self._failure.add_note(trace)
        raise self._failure

    def _find_dead(self) -> None:
        """Raise the failure of the stage that ended first; others ended because it did."""
        until = time.monotonic() + _ROOT_SECONDS
        while time.monotonic() < until:
            for index, process in enumerate(self._processes):
                commands = self._commands[index]
                with suppress(EOFError, OSError):
                    while commands.poll():
                        kind, value = child.received(commands)
                        if kind == "failed":
                            self._fail(index, *value)
                if process.exitcode not in (None, child.NEIGHBOUR_GONE):
                    what = errors.death(process.exitcode)
                    raise self._error(errors.StageError, index, what) from None
            time.sleep(0.005)
        raise self._error(errors.StageError, 0, "its process ended")

    def _flush(self) -> None:
        """Send what has room on its link."""
        try:
            for outlet, waiting in self._pending:
                while waiting and outlet.room():
                    outlet.send(waiting.popleft())
        except errors.LinkClosedError:
            self._find_dead()
