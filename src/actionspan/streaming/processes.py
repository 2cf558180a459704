"""A process for each stage: for stages of a few milliseconds, and for those that draw numbers."""

import multiprocessing
import signal
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import nn

from actionspan.streaming.child import NEIGHBOUR_GONE, Job, counts_in, forms_of, pack, serve
from actionspan.streaming.errors import LinkClosedError, StageError, StallError
from actionspan.streaming.messages import Message, Reply, cloned
from actionspan.streaming.shared import SharedBlock, module_tensors, share, unshare
from actionspan.streaming.sockets import SocketInlet, SocketOutlet, link
from actionspan.streaming.stage import Options, Part, parts_of
from actionspan.streaming.worker import COUNTS

# Imported once, by the server that processes are forked from; the first optimiser would import
# the second, in each process for itself.
_PRELOADED = ["actionspan.streaming.child", "torch._dynamo"]
_START_SECONDS = 120.0
_CLOSE_SECONDS = 1.0  # for a polite end; then processes are killed
_ROOT_SECONDS = 0.5  # to see which of several processes ended first


class ProcessExecutor:
    """Runs each stage in a process of its own; the caller's modules stay the live ones.

    Raises:
        ValueError: A module, loss or optimiser cannot be sent to another process.
    """

    def __init__(self, parts: Sequence[Part], options: Options) -> None:
        count = len(parts)
        self._modules = [part.module for part in parts]
        self._learning = parts[0].learning is not None
        self._stall_seconds, self._record = options.stall_seconds, options.record
        names = [f"stage {index + 1} of {count}" for index in range(count)]
        packed = [
            pack(part.module, part.learning, name) for part, name in zip(parts, names, strict=True)
        ]
        self._tensors = [module_tensors(part.module) for part in parts]
        self._replies: deque[Reply | None] = deque()
        self._pending: deque[tuple[SocketOutlet, Message | None]] = deque()
        self._answers: list[deque[Any]] = [deque() for _ in parts]
        self._failure: StageError | None = None
        block = SharedBlock(8 * len(COUNTS) * count)
        self._counts = counts_in(block, count)
        ends = self._open_links(count)
        kept = (torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled())
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._commands: list[Connection] = []
        self._processes = []
        with _interrupts_held():
            for part, name, code, tensors, own in zip(
                parts, names, packed, self._tensors, ends, strict=True
            ):
                ours, theirs = multiprocessing.Pipe()
                shared = share(tensors)
                job = Job(
                    part.place, code, shared, forms_of(tensors), block, own, theirs, options, kept
                )
                process = context.Process(target=serve, args=(job,), name=name, daemon=True)
                process.start()
                self._processes.append(process)
                self._commands.append(ours)
                for end in own.values():
                    end.close()
                theirs.close()
                shared.close()
        block.close()
        try:
            for index in range(count):
                self._wait_for(self._answers[index], _START_SECONDS)
                self._answers[index].popleft()
        except BaseException:
            self.close(failed=True)
            raise

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
        return ends

    def feed(self, arriving: Message | None, target: Message | None) -> None:
        """Begin a step: the first stage gets a sample, the last the target of what it holds."""
        self._pending.append((self._samples, arriving))
        if self._targets is not None:
            self._pending.append((self._targets, target))
        for index in range(len(self._modules)):
            self._tell(index, ("step", None))
        self._flush()

    def reply(self) -> Reply | None:
        """Wait for the answer of the oldest step that was not asked for; None: it had none.

        Raises:
            StageError: A stage failed or died, or gave no sign of life for `stall_seconds`.
        """
        self._wait_for(self._replies, self._stall_seconds)
        return self._replies.popleft()

    def ready(self, timeout: float | None) -> bool:
        """Wait until the oldest step has its answer; False: it has none yet."""
        until = time.monotonic() + (timeout or 0.0)
        while not self._replies:
            left = until - time.monotonic()
            self._receive(max(0.0, left))
            if left <= 0:
                break
        return bool(self._replies)

    def train(self, stage: int, training: bool) -> None:
        """Set the mode of a stage, here and in its process."""
        module = self._modules[stage]
        if isinstance(module, nn.Module):
            module.train(training)
        self._ask(stage, "train", training)

    def states(self) -> list[dict[str, Any]]:
        """Return the state of each stage, with the messages on their way to it."""
        return self._ask_all("state")

    def load(self, states: list[dict[str, Any]]) -> None:
        """Go on from `states`."""
        for index, state in enumerate(states):
            self._ask(index, "load", state)
            for inner, training in zip(
                parts_of(self._modules[index]), state["training"], strict=True
            ):
                inner.training = training

    def settle(self) -> None:
        """Wait until all stages have done the steps begun."""
        self._ask_all("settle")

    def reports(self) -> list[dict[str, Any]]:
        """Return what each stage has done so far; events are asked for."""
        events = self._ask_all("events") if self._record else [[] for _ in self._modules]
        whole = len(COUNTS) - 2  # the last two are seconds
        return [
            {
                name: value if place >= whole else int(value)
                for place, (name, value) in enumerate(zip(COUNTS, row, strict=True))
            }
            | {"events": noted}
            for row, noted in zip(self._counts.tolist(), events, strict=True)
        ]

    def processes(self) -> list[int]:
        """Return the process ids of the stages that have a process of their own."""
        return [process.pid for process in self._processes if process.pid]

    def close(self, *, failed: bool = False) -> None:
        """End all processes; the modules keep their weights, in memory of this process."""
        if not failed:
            for index in range(len(self._processes)):
                self._tell(index, ("stop", None), quiet=True)
        for commands in self._commands:
            if failed:
                commands.close()
        ends = [self._samples.end, self._inlet.end]
        ends += [self._targets.end] if self._targets else []
        if failed:
            for end in ends:
                end.close()
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
        for commands in self._commands:
            commands.close()
        for tensors in self._tensors:
            unshare(tensors)
        self._processes, self._commands = [], []

    def _ask(self, stage: int, command: str, given: Any = None) -> Any:
        self._tell(stage, (command, given))
        self._wait_for(self._answers[stage], self._stall_seconds)
        return self._answers[stage].popleft()

    def _ask_all(self, command: str) -> list[Any]:
        for index in range(len(self._modules)):
            self._tell(index, (command, None))
        for answers in self._answers:
            self._wait_for(answers, self._stall_seconds)
        return [answers.popleft() for answers in self._answers]

    def _tell(self, stage: int, command: tuple[str, Any], *, quiet: bool = False) -> None:
        try:
            self._commands[stage].send(command)
        except OSError:
            if not quiet:
                self._find_dead()

    def _wait_for(self, queue: "deque[Any]", seconds: float) -> None:
        """Wait until a queue has an item, as long as stages are alive."""
        beats, since = self._counts[:, 0].tolist(), time.monotonic()
        while not queue:
            self._receive(max(0.001, seconds - (time.monotonic() - since)))
            if queue or time.monotonic() - since < seconds:
                continue
            now = self._counts[:, 0].tolist()
            if now == beats:
                stage = beats.index(min(beats))
                raise self._error(StallError, stage, f"no sign of life for {seconds:g} s")
            beats, since = now, time.monotonic()

    def _receive(self, timeout: float) -> None:
        """Wait for whatever comes first, and take it in."""
        if self._failure is not None:
            raise self._failure
        self._flush()
        waiting: list[Any] = [self._inlet.end, *self._commands]
        waiting += [process.sentinel for process in self._processes]
        waiting += {outlet.end for outlet, _ in self._pending}
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
        received = self._inlet.receive()
        if received is None:
            return None
        message = cloned(received)
        self._inlet.release()
        *output, loss, (alone, known) = message.tensors
        answer = Message(message.sample, tuple(output), bool(alone))
        return Reply(answer, loss if known else None)

    def _take(self, index: int) -> None:
        """Take in what the process of a stage says."""
        try:
            kind, value = self._commands[index].recv()
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
        """Raise the failure of the stage that ended first.

        Raises:
            StageError: Always: who ended because a neighbour did is not to blame.
        """
        until = time.monotonic() + _ROOT_SECONDS
        while time.monotonic() < until:
            for index, (process, commands) in enumerate(
                zip(self._processes, self._commands, strict=True)
            ):
                try:
                    while commands.poll():
                        kind, value = commands.recv()
                        if kind == "failed":
                            self._fail(index, *value)
                except (EOFError, OSError):
                    pass
                if process.exitcode not in (None, 0, NEIGHBOUR_GONE):
                    raise self._error(StageError, index, _death(process.exitcode))
            time.sleep(0.005)
        raise self._error(StageError, 0, "its process ended")

    def _error(self, kind: type[StageError], stage: int, what: str) -> StageError:
        self._failure = kind(stage, len(self._modules), self._sample_of(stage), what)
        return self._failure

    def _sample_of(self, stage: int) -> int:
        """Return the sample that a stage works on or waits for, by the steps that it has done."""
        return max(-1, int(self._counts[stage, 0]) - (stage if self._learning else 0))

    def _flush(self) -> None:
        """Send what has room on its link."""
        try:
            for outlet in {id(outlet): outlet for outlet, _ in self._pending}.values():
                while (found := self._first(outlet)) is not None and outlet.room():
                    outlet.send(self._pending[found][1])
                    del self._pending[found]
        except LinkClosedError:
            self._find_dead()

    def _first(self, outlet: SocketOutlet) -> int | None:
        for place, (to, _) in enumerate(self._pending):
            if to is outlet:
                return place
        return None


def _death(status: int | None) -> str:
    if status is not None and status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}"


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes start: they would inherit it before they ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
