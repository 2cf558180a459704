"""The parts of a device that the GPU executors use: streams, events, copies and graphs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

# A device's own objects; only the backend looks inside.
Stream = Any
Event = Any
Graph = Any
_cuda: Any = torch.cuda  # annotated in part


class CudaBackend:
    """GPUs of NVIDIA by torch.cuda. No method lets the host wait, unless its docstring states it.

    There are few methods, so that tests can put a recorder in their place, which runs everything on
    CPU and checks who waited for whom.
    """

    def __init__(self) -> None:
        self._used: set[torch.device] = set()  # others have no work, and asking takes their memory

    def devices(self) -> list[torch.device]:
        """Return the devices there are."""
        return [torch.device("cuda", index) for index in range(_cuda.device_count())]

    def place(self, module: nn.Module, device: torch.device) -> None:
        """Move a module to a device; its parameters stay the same objects."""
        module.to(device)

    def stream(self, device: torch.device) -> Stream:
        """Return a new queue of work."""
        self._used.add(device)
        return _cuda.Stream(device)

    def on(self, stream: Stream) -> AbstractContextManager[Any]:
        """Give the work inside to a stream, and its memory to the stream's device."""
        context: AbstractContextManager[Any] = _cuda.stream(stream)
        return context

    def record(self, stream: Stream) -> Event:
        """Return a new event: all that the stream was given so far is done."""
        return stream.record_event(_cuda.Event())

    def wait(self, stream: Stream, event: Event) -> None:
        """Let work queued on the stream from now on wait for an event."""
        stream.wait_event(event)

    def done(self, event: Event) -> bool:
        """Return whether an event has happened."""
        return bool(event.query())

    def synchronize(self) -> None:
        """Let the host wait for all work on the devices that have streams."""
        for device in self._used:
            _cuda.synchronize(device)

    def empty(self, like: Tensor, device: torch.device) -> Tensor:
        """Return memory of a device; it belongs to the current stream."""
        return torch.empty_like(like, device=device)

    def static(self, like: Tensor, device: torch.device) -> Tensor:
        """Return memory of a device for every stream, to be kept until all work is done.

        The host waits: a stream may still read a tensor that had this memory before.
        """
        tensor = torch.empty_like(like, device=device)
        _cuda.synchronize(device)
        return tensor

    def pinned(self, like: Tensor) -> Tensor:
        """Return memory of the host that devices can copy from and to on their own."""
        return torch.empty_like(like, device="cpu", pin_memory=True)

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy within a device, or between it and pinned memory, in the current stream."""
        target.copy_(source, non_blocking=True)

    def copy_across(self, target: Tensor, source: Tensor, send: Stream, receive: Stream) -> None:
        """Copy to another device: on `send`, which waits for `receive`, and then it for `send`.

        torch runs the copy on the source's current stream and lets both streams meet.
        """
        with _cuda.stream(receive), _cuda.stream(send):
            target.copy_(source, non_blocking=True)

    def hold(self, tensor: Tensor, stream: Stream) -> None:
        """Keep memory that another stream owns until the work queued on this stream is done."""
        tensor.record_stream(stream)

    def random(self, device: torch.device) -> Tensor:
        """Return the state of a device's random generator, as bytes on the host."""
        state: Tensor = _cuda.get_rng_state(device)
        return state

    def set_random(self, device: torch.device, state: Tensor) -> None:
        """Set the state of a device's random generator."""
        _cuda.set_rng_state(state, device)

    def seeded(self, device: torch.device, seed: int) -> Tensor:
        """Return the state that a seed gives."""
        return torch.Generator(device).manual_seed(seed).get_state()

    def mark(self, stream: Stream) -> Event:
        """Return a new event that notes when it happened."""
        return stream.record_event(_cuda.Event(enable_timing=True))

    def seconds(self, begin: Event, end: Event) -> float:
        """Return the time between two such events of one device, which have both happened."""
        return float(begin.elapsed_time(end)) / 1e3

    def capture(self, stream: Stream, works: Sequence[Callable[[], None]]) -> list[Graph]:
        """Note what each work gives to a stream, without running it; return a graph of each.

        The graphs share memory of their own, so they may only run one after the other. The host
        waits for all work before.
        """
        # What other threads do (whoever reads samples and pins memory, autograd for another
        # device) must not break a capture that has nothing to do with them.
        mode = "thread_local"
        pool, graphs = _cuda.graph_pool_handle(), []
        self.synchronize()
        with _cuda.device(stream.device):
            for work in works:
                graph = _cuda.CUDAGraph()
                with _cuda.graph(graph, pool=pool, stream=stream, capture_error_mode=mode):
                    work()
                graphs.append(graph)
        return graphs

    def replay(self, graph: Graph) -> None:
        """Run a graph in the current stream."""
        graph.replay()


@dataclass(frozen=True)
class Lane:
    """A stage's part of its device: queues for its work, its inputs and its outputs.

    Copies have separate queues, to run while the same stage works.
    """

    device: torch.device
    compute: Stream
    receive: Stream
    send: Stream


def lanes_of(
    backend: CudaBackend, stages: int, devices: Sequence[torch.device | str] | None
) -> list[Lane]:
    """Return a lane for each stage; without `devices` neighbours share one or have the next.

    Raises:
        ValueError: There are more or fewer devices than stages, or one does not exist.
    """
    existing = backend.devices()
    if devices is None:
        used = min(stages, len(existing))
        chosen = [existing[stage * used // stages] for stage in range(stages)]
    else:
        if len(devices) != stages:
            raise ValueError(
                f"devices: {len(devices)} given for {stages} stages; name one for each stage, "
                "the same one several times if they share it"
            )
        chosen = [_indexed(torch.device(device), existing) for device in devices]
    for device in chosen:
        if device not in existing:
            raise ValueError(f"device {device}: one of {', '.join(map(str, existing))}")
    return [Lane(device, *(backend.stream(device) for _ in range(3))) for device in chosen]


def _indexed(device: torch.device, existing: list[torch.device]) -> torch.device:
    """Return the first device of its type if the number is not given."""
    same = [each for each in existing if each.type == device.type]
    return same[0] if device.index is None and same else device


def cuda_backend(executor: str) -> CudaBackend:
    """Return the backend of this machine's GPUs.

    Raises:
        ValueError: There is none.
    """
    if not torch.cuda.is_available():
        raise ValueError(
            f'executor "{executor}" needs a CUDA device and torch sees none; '
            'use "thread" or "process" on CPU'
        )
    return CudaBackend()
