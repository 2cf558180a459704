"""Pipelines measured: their stages, speed and bytes, and gradients next to the true ones."""

import copy
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from actionspan.networks.division import Fork, Join, division
from actionspan.streaming.balance import (
    Balanced,
    Costs,
    StageBytes,
    balance_stages,
    partition,
    stage_bytes,
)
from actionspan.streaming.learning import Gradients
from actionspan.streaming.messages import Value, bytes_of, message_of
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.partime.networks import Wait, Whole, sgd, squared

LEARN: dict[str, Any] = {"loss": squared, "optimiser": sgd}
"""Losses and optimisers of a pipeline where only time or bytes count."""
_FEWEST, _MOST = 6, 400  # samples of a measurement


def balanced(
    network: nn.Module, sample: Tensor, depths: Sequence[int], *, learning: bool
) -> Iterator[tuple[int, Balanced]]:
    """Yield a network in each number of stages; its layers are measured once."""
    costs = None
    for depth in depths:
        stages = balance_stages(
            network, sample, depth, learning=learning, divide=division, costs=costs, repetitions=5
        )
        costs = stages.costs
        yield depth, stages


def counted_costs(layers: Sequence[nn.Module], sample: Value) -> Costs:
    """Return as costs the multiplications of each of a chain of layers; messages cost nothing.

    Multiplications of convolutions and classifiers are counted, not timed: the same on every
    machine.
    """
    counted, value = [], sample
    for layer in layers:
        was = layer.training
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            value = layer.eval()(value)
        layer.train(was)
        counted.append(counter.get_total_flops() / 2)  # a multiplication and an addition
    return Costs(seconds=tuple(counted), message_bytes=(0,) * (len(counted) + 1))


def stages_by_counting(layers: Sequence[nn.Module], sample: Value, stages: int) -> Balanced:
    """Return layers in the stages that counting balances best."""
    costs = counted_costs(layers, sample)
    return Balanced(layers, costs, partition(costs, stages))


def measure(
    network: nn.Module,
    stages: Sequence[nn.Module],
    sample: Tensor,
    target: Tensor | None,
    *,
    executor: str,
    pairs: int,
    samples: int,
) -> tuple[list[float], float]:
    """Return how much faster than a plain loop a pipeline is in its steady state, pair by pair.

    The stages are `network`'s; the loop has a copy. Which of both comes first alternates.
    Both learn where there is a target. The second value is the load of the machine around the
    pairs. Call it with torch on one thread.
    """
    learning = target is not None
    alone = copy.deepcopy(network).train(learning)
    for stage in stages:
        stage.train(learning)
    optimiser = sgd(alone.parameters()) if learning else None
    speedups = []
    begun = os.getloadavg()[0]
    with Pipeline(stages, executor, **(LEARN if learning else {})) as pipeline:
        _steady(pipeline, sample, target, _FEWEST)
        _loop(alone, optimiser, sample, target, 2)
        for pair in range(pairs):
            if pair % 2:
                piped = _steady(pipeline, sample, target, samples)
            looped = _loop(alone, optimiser, sample, target, samples)
            if not pair % 2:
                piped = _steady(pipeline, sample, target, samples)
            speedups.append(looped / piped)
    return speedups, max(begun, os.getloadavg()[0])


def samples_for(seconds: float, sample_seconds: float) -> int:
    """Return how many samples take about `seconds`."""
    return max(_FEWEST, min(_MOST, round(seconds / max(sample_seconds, 1e-9))))


def _loop(
    network: nn.Module,
    optimiser: torch.optim.Optimizer | None,
    sample: Tensor,
    target: Tensor | None,
    samples: int,
) -> float:
    """Return the seconds a sample of a plain loop."""
    begun = time.perf_counter()
    for _ in range(samples):
        with torch.set_grad_enabled(optimiser is not None):
            output = network(sample)
            if optimiser is not None and target is not None:
                torch.autograd.backward((squared(output, target),))
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
    return (time.perf_counter() - begun) / samples


def _steady(pipeline: Pipeline, sample: Tensor, target: Tensor | None, samples: int) -> float:
    """Return the seconds from answer to answer, between filling and draining."""
    margin = 2 * len(pipeline.report()) + 2
    given = sample if target is None else (sample, target)
    answers = pipeline.run(repeat(given, samples + 2 * margin))
    times = [time.perf_counter() for _ in answers]
    return (times[margin + samples - 1] - times[margin - 1]) / samples


def emulate(
    seconds: Sequence[float], loop_seconds: float, *, learning: bool, samples: int
) -> float:
    """Return the speed-up over a loop of stages that wait as long as the real ones compute.

    It shows what filling, hand-over and the slowest stage leave of D; the cores do nothing.
    """
    value = torch.zeros(1, 16)
    stages = [Wait(own, learning=learning) for own in seconds]
    with Pipeline(stages, "thread", **(LEARN if learning else {})) as pipeline:
        return loop_seconds / _steady(pipeline, value, value if learning else None, samples)


def footprints(
    stages: Sequence[nn.Module], sample: Tensor, target: Tensor, mode: Gradients
) -> list[StageBytes]:
    """Return the bytes of each stage that learns with SGD, by the closed form.

    What autograd saves of the sample is counted, with `squared` of the last output and the target.
    """
    found = []
    value: Value = sample
    for index, stage in enumerate(stages):
        arriving = bytes_of(message_of(index, value, "the input").tensors)
        last = index == len(stages) - 1
        saved, value = _saved(stage, value, target if last else None)
        buffers = bytes_of(tuple(stage.buffers()))
        size = stage_bytes(
            index,
            len(stages),
            gradients=mode,
            weights=bytes_of(tuple(stage.parameters())) + buffers,
            learned=bytes_of(tuple(p for p in stage.parameters() if p.requires_grad)),
            saved=saved,
            message=arriving,
            signal=bytes_of(message_of(index, value, "the output").tensors),
            target=bytes_of((target,)),
            buffers=buffers,
        )
        found.append(size)
    return found


def _saved(stage: nn.Module, value: Value, target: Tensor | None) -> tuple[int, Value]:
    """Return the bytes that autograd saves except weights and input, and the output."""
    given = message_of(0, value, "the input")
    inputs = [tensor.requires_grad_() for tensor in given.tensors]
    known = {t.untyped_storage().data_ptr() for t in [*inputs, *stage.parameters()]}
    held: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        output: Value = stage(inputs[0] if given.alone else tuple(inputs))
        if target is not None:
            squared(output, target)
    return sum(held.values()), message_of(0, output, "the output").value


def kept_bytes(
    stages: Sequence[nn.Module], sample: Tensor, target: Tensor, mode: Gradients
) -> list[int]:
    """Return the bytes of inputs, buffers and weights that each stage keeps of the past."""
    with Pipeline(stages, gradients=mode, **LEARN) as pipeline:
        for _ in range(4 * len(stages) + 1):  # the weights of the fill are gone
            pipeline.step(sample, target)
        states = pipeline.state_dict()["stages"]
    counted = []
    for state in states:
        history = state["history"] or {"kept": []}
        held: dict[int, Tensor] = {}
        for _, message, _, buffers, weights in history["kept"]:
            tensors = [*message[1], *buffers.values(), *(weights or {}).values()]
            held |= {tensor.data_ptr(): tensor for tensor in tensors}
        counted.append(bytes_of(tuple(held.values())))
    return counted


def cut_bytes(stages: Sequence[nn.Module], sample: Value) -> list[tuple[int, int]]:
    """Return for each cut the bytes of the message, and of its first tensor alone."""
    sent, value = [], sample
    for stage in stages[:-1]:
        value = stage(value)
        tensors = message_of(0, value, "the output").tensors
        sent.append((bytes_of(tensors), bytes_of(tensors[:1])))
    return sent


def whole_blocks(links: Sequence[nn.Module]) -> list[nn.Module]:
    """Return a chain with its residual blocks left whole: from a `Fork` to its `Join`."""
    blocks: list[list[nn.Module]] = []
    inside = False
    for link in links:
        if not inside:
            blocks.append([])
        blocks[-1].append(link)
        inside = isinstance(link, Fork) or (inside and not isinstance(link, Join))
    return [Whole(block) for block in blocks]


class Probe:
    """Compares the gradient of each stage with the true one of the same sample's `squared`.

    The true one is by the whole network with the weights from before the step. Give `clips`
    to the pipeline, which has the `sequential` executor, and call `before` and `cosines` round a
    step.
    """

    def __init__(self, stages: Sequence[nn.Module]) -> None:
        self._stages = list(stages)
        self._twin = [copy.deepcopy(stage) for stage in stages]
        self._used: list[Tensor | None] = [None] * len(stages)
        self.clips = [partial(self._keep, index) for index in range(len(stages))]

    def _keep(self, index: int, parameters: Iterable[nn.Parameter]) -> None:
        self._used[index] = _flat(parameters)

    def before(self) -> None:
        """Remember the weights, and forget the gradients of earlier steps."""
        self._used = [None] * len(self._stages)
        for stage, twin in zip(self._stages, self._twin, strict=True):
            twin.load_state_dict(stage.state_dict())

    def cosines(self, step: int, sample: Callable[[int], tuple[Tensor, Tensor]]) -> list[float]:
        """Return the cosine of each stage, after a step; NaN where it learned nothing.

        Args:
            step: Which, from 0.
            sample: Returns a sample and its target by their index.
        """
        found = []
        for index, used in enumerate(self._used):
            carried = step + index - 2 * len(self._stages) + 2
            if used is None or carried < 0:
                found.append(float("nan"))
                continue
            true = self._true(*sample(carried))[index]
            found.append(float(functional.cosine_similarity(used, true, dim=0)))
        return found

    def _true(self, x: Tensor, y: Tensor) -> list[Tensor]:
        out = x
        with torch.enable_grad():
            for stage in self._twin:
                stage.zero_grad(set_to_none=True)
                out = stage(out)
            torch.autograd.backward((squared(out, y),))
        return [_flat(stage.parameters()) for stage in self._twin]


def _flat(parameters: Iterable[nn.Parameter]) -> Tensor:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return torch.cat([gradient.detach().flatten() for gradient in gradients])
