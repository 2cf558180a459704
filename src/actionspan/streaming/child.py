"""The process of one stage, and how a module comes into it: its tensors stay where they are."""

import io
import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from actionspan.jobs.apart import end_with_parent
from actionspan.jobs.memory import keep_freed_memory
from actionspan.streaming.errors import LinkClosedError
from actionspan.streaming.messages import Ends, Message
from actionspan.streaming.sockets import SharedBlock, Spot, module_tensors, spots_of
from actionspan.streaming.stage import COUNTS, Options, Part, Place, Stage, parts_of
from actionspan.streaming.worker import Worker

# The server that processes are forked from leaves the program's group: a signal to the whole group,
# as service managers send it, would end the server too and with it all news of the stages, while
# the program is still writing its files. The server ends when the program does.
if any(word.startswith("from multiprocessing.forkserver import main") for word in sys.orig_argv):
    os.setsid()

NEIGHBOUR_GONE = 3  # exit status


class Form(NamedTuple):
    """Of one tensor of a module, in the order of `module_tensors`."""

    spot: Spot
    parameter: bool
    learns: bool
    attributes: dict[str, Any]  # that somebody gave a parameter


class Job(NamedTuple):
    """All that the process of a stage gets."""

    place: Place
    packed: bytes  # `pack` made it of the module and its learning
    block: SharedBlock  # the module's tensors
    forms: list[Form]
    counts: SharedBlock  # what each stage has done: `stage_counts`
    ends: Ends
    commands: Connection
    options: Options
    torch: tuple[torch.dtype, int]  # default type; mode of deterministic kernels


def forms_of(tensors: list[Tensor]) -> list[Form]:
    """Return how the tensors of a module lie in its block."""
    spots, _ = spots_of(tensors)
    return [
        Form(spot, isinstance(t, nn.Parameter), t.requires_grad, dict(vars(t)))
        for spot, t in zip(spots, tensors, strict=True)
    ]


def stage_counts(block: SharedBlock, stages: int) -> Tensor:
    """Return the counts (D, `COUNTS`) of all stages, which each stage writes after a step."""
    return block.tensor(Spot(0, torch.float64, (stages, len(COUNTS)), (len(COUNTS), 1)))


def send(connection: Connection, value: Any) -> None:
    """Send a value whole: the pickler of connections would open a descriptor for each tensor."""
    connection.send_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def received(connection: Connection) -> Any:
    """Wait for a value that `send` sent."""
    return pickle.loads(connection.recv_bytes())


def pack(part: Part) -> bytes:
    """Return a module and how it learns as bytes, without its parameters and buffers.

    Raises:
        ValueError: Something in it cannot be sent to another process.
    """
    packed = io.BytesIO()
    try:
        _Pickler(packed, module_tensors(part.module)).dump((part.module, part.learning))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{part.place} cannot be sent to a process: {error}; define classes and functions at "
            'the top of a module, or use executor "thread" or "sequential"'
        ) from None
    return packed.getvalue()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, tensors: list[Tensor]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(tensor): number for number, tensor in enumerate(tensors)}

    def persistent_id(self, value: Any) -> int | None:
        return self._numbers.get(id(value)) if isinstance(value, Tensor) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, packed: bytes, tensors: list[Tensor]) -> None:
        super().__init__(io.BytesIO(packed))
        self._tensors = tensors

    def persistent_load(self, number: Any) -> Tensor:
        tensor: Tensor = self._tensors[number]
        return tensor


def serve(job: Job) -> None:
    """Run the stage until a command to stop, or until a neighbour or the parent is gone."""
    # the pipeline ends its stages, also when a signal reaches the whole group
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent()
    stage: Stage | None = None
    try:
        stage = _stage(job)
        worker = _worker(job, stage)
        send(job.commands, ("done", None))
        worker.run(partial(_next_command, job.commands), partial(_answer, job.commands))
    except LinkClosedError:
        raise SystemExit(NEIGHBOUR_GONE) from None
    except BaseException as error:
        what = f"{type(error).__name__}: {error}"
        sample = stage.sample if stage else -1
        with suppress(OSError):  # the pipeline may have closed
            send(job.commands, ("failed", (sample, what, traceback.format_exc())))
        raise SystemExit(1) from None


def _stage(job: Job) -> Stage:
    keep_freed_memory()
    torch.set_num_threads(job.options.threads)
    dtype, determinism = job.torch
    torch.set_default_dtype(dtype)
    torch.set_deterministic_debug_mode(determinism)
    tensors: list[Tensor] = []
    for form in job.forms:
        tensor = job.block.tensor(form.spot)
        tensor = nn.Parameter(tensor, form.learns) if form.parameter else tensor
        vars(tensor).update(form.attributes)
        tensors.append(tensor)
    module, learning = _Unpickler(job.packed, tensors).load()
    stage = Stage(Part(module, job.place, learning), job.options, random="process")
    torch.set_rng_state(stage.random)
    return stage


def _worker(job: Job, stage: Stage) -> Worker:
    """Return the stage's worker, which keeps counts and buffers where the program sees them."""
    counts = stage_counts(job.counts, job.place.stages)
    buffers = [
        (part, name, buffer)
        for part in parts_of(stage.module)
        for name, buffer in part.named_buffers(recurse=False)
    ]

    def beat() -> None:
        _keep_buffers(buffers)
        counts[job.place.index] = torch.tensor(stage.counts(), dtype=torch.float64)

    def answer(message: Message | None, loss: Tensor | None) -> None:
        if message is not None:
            # a loss that is missing keeps its place: all messages are formed like the first
            flags = torch.tensor([message.alone, loss is not None])
            given = torch.full((), torch.nan) if loss is None else loss.reshape(())
            tensors = (*message.tensors, given.double(), flags)
            message = Message(message.sample, tensors, False)
        job.ends.right.send(message)

    return Worker(stage, job.ends, answer, beat)


def _next_command(commands: Connection) -> tuple[str, Any]:
    """Wait for a command of the program."""
    try:
        command: tuple[str, Any] = received(commands)
    except (EOFError, OSError):
        raise LinkClosedError from None
    return command


def _answer(commands: Connection, value: Any) -> None:
    """Answer the program."""
    try:
        send(commands, ("done", value))
    except OSError:
        raise LinkClosedError from None


def _keep_buffers(buffers: list[tuple[nn.Module, str, Tensor]]) -> None:
    """Bring buffers that a module has replaced back into the memory that the caller sees."""
    for part, name, shared in buffers:
        now = getattr(part, name)
        if now is not shared and now is not None and now.shape == shared.shape:
            with torch.no_grad():
                shared.copy_(now)
            setattr(part, name, shared)
