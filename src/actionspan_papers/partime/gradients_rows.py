"""Gradients of pipelines beside the true ones, run by run."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.running.determinism import deterministic
from actionspan.streaming.learning import Gradients, Loss
from actionspan.streaming.messages import Value
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Row
from actionspan_papers.partime.bytes_rows import footprints
from actionspan_papers.partime.footage import Footage, frame_stream, random_stream, speed
from actionspan_papers.partime.networks import (
    RANDOM_INPUTS,
    RANDOM_OUTPUTS,
    RANDOM_UNITS,
    autoencoder,
    in_stages,
    perceptron,
    teacher,
)
from actionspan_papers.partime.settings import MODES, GradientSettings, PartimeSettings

_MEASURED = 30  # steps of a stream in which gradients are compared


class _Stream(NamedTuple):
    """Samples with their targets, and the network that learns them."""

    kind: str
    setting: str
    inputs: Tensor
    targets: Tensor
    network: nn.Sequential


def gradient_rows(footage: Footage, own: PartimeSettings, settings: GradientSettings) -> list[Row]:
    """Return a row a stream, number of stages, mode, stage and seed."""
    with deterministic(threads=1):
        return [
            row
            for stream, seed in _streams(footage, own, settings)
            for stages, mode in [
                (1, MODES[0]),
                *((count, mode) for count in own.stages for mode in MODES),
            ]
            for row in _measured(stream, seed, stages, mode, settings)
        ]


def _streams(
    footage: Footage, own: PartimeSettings, settings: GradientSettings
) -> Iterator[tuple[_Stream, int]]:
    """Yield every stream with its seed; a network of the seed begins each the same."""
    for seed in range(1, own.seeds + 1):
        generator = torch.Generator().manual_seed(seed)
        wanted = teacher(generator)
        for correlation in settings.correlations:
            inputs = random_stream(correlation, settings.samples, seed)
            torch.manual_seed(seed)
            network = perceptron(RANDOM_INPUTS, RANDOM_UNITS, RANDOM_OUTPUTS, nn.Tanh)
            name = f"correlation {correlation:g}"
            yield _Stream("random", name, inputs, wanted(inputs), network), seed
        for every in settings.subsampling:
            frames = frame_stream(footage, every, settings.samples, seed)
            torch.manual_seed(seed)
            name = "every frame" if every == 1 else f"every {every} frames"
            yield _Stream("frames", name, frames, frames, autoencoder()), seed


def _measured(
    stream: _Stream, seed: int, stages: int, mode: Gradients, settings: GradientSettings
) -> list[Row]:
    """Return a row for each stage of a pipeline that learns a stream."""
    rates = {"random": settings.learning_rate, "frames": settings.frames_learning_rate}
    rate = rates[stream.kind]
    network = copy.deepcopy(stream.network)
    parts = in_stages(list(network), stages)
    probe, count = Probe(parts, _loss), len(stream.inputs)
    first = max(2 * stages, count // 4)
    chosen = set(np.linspace(first, count - 1, min(_MEASURED, count - first)).astype(int).tolist())
    cosines, losses = [], []

    def sample(index: int) -> tuple[Tensor, Tensor]:
        return stream.inputs[index : index + 1], stream.targets[index : index + 1]

    with Pipeline(
        parts,
        loss=_loss,
        optimiser=lambda parameters: torch.optim.SGD(parameters, lr=rate),
        clip=probe.clips,
        gradients=mode,
    ) as pipeline:
        for step in range(count):
            if step in chosen:
                probe.before()
            answer = pipeline.step(*sample(step))
            if step in chosen:
                cosines.append(probe.cosines(step, sample))
            if answer is not None and answer.loss is not None:
                losses.append(answer.loss)
        used = sum(report["cpu_seconds"] for report in pipeline.report())
    late = float(np.mean(losses[3 * len(losses) // 4 :]))
    sizes = footprints(parts, *sample(0), _loss, mode)
    means = np.nanmean(np.array(cosines), axis=0)
    shared = {"speed": speed(stream.inputs), "late_loss": late}
    return [
        {
            "stream": stream.kind,
            "setting": stream.setting,
            "stages": stages,
            "gradients": mode,
            "stage": stage + 1,
            "seed": seed,
            "cosine": float(means[stage]),
            **shared,
            "cpu_ms_a_step": 1000 * used / count,
            "bytes": size.total,
            "kept_bytes": size.kept,
        }
        for stage, size in enumerate(sizes)
    ]


def _loss(output: Value, target: Value) -> Tensor:
    assert isinstance(output, Tensor)
    assert isinstance(target, Tensor)
    return functional.mse_loss(output, target)


Target = Callable[[int], tuple[Tensor, Tensor]]


class Probe:
    """Compares the gradient of each stage with that of the sample whose loss it carries.

    The true one is that of the whole network with the weights from before the step. Give `clips`
    to the pipeline, which has the `sequential` executor, and call `before` and `cosines` round a
    step.
    """

    def __init__(self, stages: Sequence[nn.Module], loss: Loss) -> None:
        self._stages, self._loss = list(stages), loss
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

    def cosines(self, step: int, sample: Target) -> list[float]:
        """Return the cosine of each stage, after a step; NaN where it learned nothing.

        Args:
            step: Which, from 0.
            sample: Returns a sample and its target by their index.
        """
        count = len(self._stages)
        found = []
        for index, used in enumerate(self._used):
            carried = step + index - 2 * count + 2
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
            torch.autograd.backward((self._loss(out, y),))
        return [_flat(stage.parameters()) for stage in self._twin]


def _flat(parameters: Iterable[nn.Parameter]) -> Tensor:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return torch.cat([gradient.detach().flatten() for gradient in gradients])
