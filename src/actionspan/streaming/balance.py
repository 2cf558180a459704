"""A model cut into stages, the slowest as fast as can be, and the bytes that each will need.

A layer costs seconds of CPU time of the thread, the least over repetitions (on a busy machine wall
time measures the neighbours), and bytes of its output. A copy is measured, so that the
caller's model, its statistics of batch norm and its random numbers stay as they are.
"""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from actionspan.streaming.learning import Gradients
from actionspan.streaming.messages import Value, bytes_of, message_of
from actionspan.streaming.sockets import SLOTS

_COPIED_BYTES = 1 << 24  # to measure the cost of a byte of a message
_HOP_SECONDS = 40e-6  # of CPU time to hand over any message, at both ends together


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What N layers cost: seconds (N,) of work, and bytes (N + 1,) before, between and behind.

    With `learning` the work includes backward, and messages go both ways.
    """

    seconds: tuple[float, ...]
    message_bytes: tuple[int, ...]
    seconds_a_byte: float = 0.0
    hop_seconds: float = 0.0
    learning: bool = False

    def messages(self, edge: int) -> float:
        """Return the seconds that each of two neighbours spends on the messages at an edge."""
        ways = 2 if self.learning else 1
        moved = self.message_bytes[edge] * self.seconds_a_byte
        return ways * (moved + self.hop_seconds) / 2


def measure_costs(
    layers: Sequence[nn.Module], sample: Value, *, learning: bool, repetitions: int = 7
) -> Costs:
    """Measure a chain of layers on a sample, on one thread, with backward if it is for learning.

    Of the sample the shape matters, not the values; of the repetitions the least counts.
    """
    threads, random = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    try:
        copies = [copy.deepcopy(layer) for layer in layers]
        seconds = [float("inf")] * len(copies)
        sizes = [0] * (len(copies) + 1)
        for _ in range(repetitions):
            value = sample
            sizes[0] = bytes_of(message_of(0, value, "the sample").tensors)
            for place, layer in enumerate(copies):
                spent, value = _measured(layer, value, learning=learning, first=place == 0)
                seconds[place] = min(seconds[place], spent)
                what = f"the output of layer {place + 1}"
                sizes[place + 1] = bytes_of(message_of(0, value, what).tensors)
        return Costs(
            seconds=tuple(seconds),
            message_bytes=tuple(sizes),
            seconds_a_byte=_copy_seconds(repetitions),
            hop_seconds=_HOP_SECONDS,
            learning=learning,
        )
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(random)


def partition(costs: Costs, stages: int) -> list[int]:
    """Return the N layers' cuts (stages + 1,), from 0 to N, so that the slowest stage is fastest.

    A stage takes the time of its layers and of the messages at both its edges. Of equal
    partitions it is the one with the earliest cuts. Dynamic programming, O(stages · N²).

    Raises:
        ValueError: There are fewer layers than stages.
    """
    layers = len(costs.seconds)
    _check_count(stages, layers)
    best = [stage_seconds(costs, 0, last) if last else float("inf") for last in range(layers + 1)]
    came: list[list[int]] = []
    for _ in range(stages - 1):
        following, places = [float("inf")] * (layers + 1), [0] * (layers + 1)
        for last in range(1, layers + 1):
            for cut in range(1, last):
                slowest = max(best[cut], stage_seconds(costs, cut, last))
                if slowest < following[last]:
                    following[last], places[last] = slowest, cut
        best = following
        came.append(places)
    cuts = [layers]
    for places in reversed(came):
        cuts.insert(0, places[cuts[0]])
    return [0, *cuts]


def _check_count(stages: int, layers: int) -> None:
    if not 1 <= stages <= layers:
        raise ValueError(f"{stages} stages of {layers} layers: from 1 to {layers} are possible")


def stage_seconds(costs: Costs, first: int, last: int) -> float:
    """Return the seconds a stage of layers `first` to before `last` takes for a sample."""
    return sum(costs.seconds[first:last]) + costs.messages(first) + costs.messages(last)


def stages_seconds(costs: Costs, cuts: Sequence[int]) -> list[float]:
    """Return the seconds of each stage between cuts."""
    return [stage_seconds(costs, first, last) for first, last in pairwise(cuts)]


def _measured(
    layer: nn.Module, value: Value, *, learning: bool, first: bool
) -> tuple[float, Value]:
    """Return the CPU seconds of a layer, forward and backward, and its output."""
    inputs = [value] if isinstance(value, Tensor) else list(value)
    leaves = [tensor.detach().clone() for tensor in inputs]
    for leaf in leaves:
        leaf.requires_grad_(learning and not first and leaf.is_floating_point())
    given = [leaf.clone() for leaf in leaves]  # a layer may write into its input
    with torch.set_grad_enabled(learning):
        begun = time.thread_time()
        output: Value = layer(given[0] if isinstance(value, Tensor) else tuple(given))
        spent = time.thread_time() - begun
        outputs = [output] if isinstance(output, Tensor) else list(output)
        wanting = [tensor for tensor in outputs if tensor.requires_grad]
        if wanting:
            gradients = [torch.ones_like(tensor) for tensor in wanting]
            begun = time.thread_time()
            torch.autograd.backward(wanting, gradients)
            spent += time.thread_time() - begun
            layer.zero_grad(set_to_none=True)
    detached = [tensor.detach() for tensor in outputs]
    return spent, detached[0] if isinstance(output, Tensor) else tuple(detached)


def _copy_seconds(repetitions: int) -> float:
    source = torch.zeros(_COPIED_BYTES, dtype=torch.uint8)
    target = torch.empty_like(source)
    least = float("inf")
    for _ in range(repetitions):
        begun = time.thread_time()
        target.copy_(source)
        least = min(least, time.thread_time() - begun)
    return least / _COPIED_BYTES


Divide = Callable[[nn.Module], Sequence[nn.Module] | None]


class Balanced(list[nn.Sequential]):
    """Stages that share the modules of a model, with the seconds that each takes for a sample.

    `bound` is the speed-up that they can reach: the seconds of the model over its slowest stage's.
    Every measured speed-up is a share of it.
    """

    def __init__(self, layers: Sequence[nn.Module], costs: Costs, cuts: Sequence[int]) -> None:
        super().__init__(nn.Sequential(*layers[a:b]) for a, b in pairwise(cuts))
        self.costs, self.cuts = costs, tuple(cuts)
        self.seconds = stages_seconds(costs, cuts)
        self.bound = sum(costs.seconds) / max(self.seconds)

    def __str__(self) -> str:
        shown = " | ".join(f"{1000 * seconds:.2f}" for seconds in self.seconds)
        counts = " + ".join(str(b - a) for a, b in pairwise(self.cuts))
        return (
            f"{len(self)} stages of {counts} layers: {shown} ms; at most "
            f"{self.bound:.2f} times as fast as one"
        )


def balance_stages(
    model: nn.Module,
    sample: Value,
    stages: int,
    *,
    learning: bool = False,
    divide: Divide | None = None,
    costs: Costs | None = None,
    repetitions: int = 7,
) -> Balanced:
    """Cut a model into stages by the measured CPU time of its layers; `str` of it prints the bound.

    Args:
        model: An `nn.Sequential`, or anything that `divide` divides; its modules are shared, not
            copied, and profiling leaves them as they are.
        sample: A sample as the pipeline will get it.
        stages: How many.
        learning: Whether the pipeline will learn: backward counts too.
        divide: Returns the chain of layers that a module is, None where it is one layer. A chain
            may pass tuples, so that skip connections can be cut. By default only `nn.Sequential`
            is divided, at every depth.
        costs: Measured earlier, of the same layers.
        repetitions: Of the measurement; the least counts.

    Raises:
        ValueError: There are fewer layers than stages.
    """
    layers = layers_of(model, divide)
    _check_count(stages, len(layers))
    if costs is None:
        costs = measure_costs(layers, sample, learning=learning, repetitions=repetitions)
    return Balanced(layers, costs, partition(costs, stages))


def layers_of(model: nn.Module, divide: Divide | None = None) -> list[nn.Module]:
    """Return the chain of layers that a model is; see `balance_stages`."""
    parts: Sequence[nn.Module] | None = divide(model) if divide else None
    if parts is None and type(model) is nn.Sequential:
        parts = list(model)
    if parts is None:
        return [model]
    return [layer for part in parts for layer in layers_of(part, divide)]


@dataclass(frozen=True, kw_only=True)
class StageBytes:
    """The bytes of a stage by their content."""

    weights: int
    gradients: int
    optimiser: int
    saved: int
    inputs: int
    signals: int
    targets: int
    kept: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(asdict(self).values())


def stage_bytes(
    index: int,
    stages: int,
    *,
    gradients: Gradients = "paper",
    weights: int,
    learned: int,
    optimiser: int = 0,
    saved: int = 0,
    message: int,
    signal: int = 0,
    target: int = 0,
    buffers: int = 0,
) -> StageBytes:
    """Return the bytes of stage `index` (from 0) of a pipeline that learns, by the closed form.

    Weights + gradients + optimiser state + saved tensors of one sample + 2 input messages + 2
    gradient messages (not the last stage) + D targets (the last) + the bytes of the gradient mode:
    nothing (`paper`), 2 (D - h) inputs (`inputs`), or these and as many versions of the weights
    (`stash`). A process also has a copy of each message that it works on, so that its stage may
    keep it.

    Args:
        index: Which stage.
        stages: How many there are, D.
        gradients: The mode.
        weights: Bytes of its parameters and buffers.
        learned: Bytes of the parameters that learn; their gradients have as many.
        optimiser: Bytes of the optimiser's state.
        saved: Bytes that autograd saves of one sample.
        message: Bytes of an input message.
        signal: Bytes of the gradient message that reaches it: its output's.
        target: Bytes of a target.
        buffers: Bytes of its buffers, which are kept with every input.
    """
    last = index == stages - 1
    delay = 2 * (stages - 1 - index)
    kept = 0
    if gradients != "paper":
        kept = delay * (message + buffers)
    if gradients == "stash":
        kept += delay * (weights - buffers)
    return StageBytes(
        weights=weights,
        gradients=learned,
        optimiser=optimiser,
        saved=saved,
        inputs=SLOTS * message,
        signals=0 if last else SLOTS * signal,
        targets=stages * target if last else 0,
        kept=kept,
    )
