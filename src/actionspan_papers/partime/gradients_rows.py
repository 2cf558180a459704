"""Gradients of pipelines compared with the true ones, run by run."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.jobs.determinism import deterministic
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Row
from actionspan_papers.partime import networks
from actionspan_papers.partime.bytes_rows import footprints
from actionspan_papers.partime.footage import Footage, frame_stream, random_stream, speed
from actionspan_papers.partime.settings import (
    GradientSettings,
    PartimeSettings,
    Variant,
    variants,
)

_MEASURED = 30  # steps of a stream in which gradients are compared


class _Stream(NamedTuple):
    """Samples with their targets, the network that learns them, and its step size."""

    kind: str
    setting: str
    inputs: Tensor
    targets: Tensor
    network: nn.Sequential
    rate: float


def gradient_rows(frames: Path, own: PartimeSettings, settings: GradientSettings) -> list[Row]:
    """Return a row a stream, number of stages, mode, stage and seed."""
    footage = Footage(frames)
    with deterministic(threads=1):
        return [
            row
            for seed in range(1, own.seeds + 1)
            for stream in _streams(footage, seed, settings)
            for variant in variants(own.stages, last_only=False)
            for row in _measured(stream, seed, variant)
        ]


def _streams(footage: Footage, seed: int, settings: GradientSettings) -> Iterator[_Stream]:
    """Yield every stream of a seed; a network of the seed begins each the same."""
    wanted = networks.teacher(torch.Generator().manual_seed(seed))
    for correlation in settings.correlations:
        inputs = random_stream(correlation, settings.samples, seed)
        torch.manual_seed(seed)
        sizes = networks.RANDOM_INPUTS, networks.RANDOM_UNITS, networks.RANDOM_OUTPUTS
        network = networks.perceptron(*sizes, nn.Tanh)
        name, rate = f"correlation {correlation:g}", settings.learning_rate
        yield _Stream("random", name, inputs, wanted(inputs), network, rate)
    for every in settings.subsampling:
        frames = frame_stream(footage, every, settings.samples, seed)
        torch.manual_seed(seed)
        name = "every frame" if every == 1 else f"every {every} frames"
        rate = settings.frames_learning_rate
        yield _Stream("frames", name, frames, frames, networks.autoencoder(), rate)


def _measured(stream: _Stream, seed: int, variant: Variant) -> list[Row]:
    """Return a row for each stage of a pipeline that learns a stream."""
    parts = networks.in_stages(copy.deepcopy(stream.network), variant.stages)
    probe, count = Probe(parts), len(stream.inputs)
    first = max(2 * variant.stages, count // 4)
    chosen = set(np.linspace(first, count - 1, min(_MEASURED, count - first)).astype(int).tolist())
    cosines, losses = [], []

    def sample(index: int) -> tuple[Tensor, Tensor]:
        return stream.inputs[index : index + 1], stream.targets[index : index + 1]

    how: dict[str, Any] = {"loss": networks.squared, "gradients": variant.gradients}
    sgd = partial(torch.optim.SGD, lr=stream.rate)
    with Pipeline(parts, optimiser=sgd, clip=probe.clips, **how) as pipeline:
        for step in range(count):
            if step in chosen:
                probe.before()
            answer = pipeline.step(*sample(step))
            if step in chosen:
                cosines.append(probe.cosines(step, sample))
            if answer is not None and answer.loss is not None:
                losses.append(answer.loss)
        used = sum(report["cpu_seconds"] for report in pipeline.report())
    named = {"stream": stream.kind, "setting": stream.setting, **variant.cells}
    means = np.nanmean(np.array(cosines), axis=0)
    sizes = footprints(parts, *sample(0), variant.gradients)
    return [
        {
            **named,
            "stage": stage,
            "seed": seed,
            "cosine": float(mean),
            "speed": speed(stream.inputs),
            "late_loss": float(np.mean(losses[3 * len(losses) // 4 :])),
            "cpu_ms_a_step": 1000 * used / count,
            "bytes": size.total,
            "kept_bytes": size.kept,
        }
        for stage, (mean, size) in enumerate(zip(means, sizes, strict=True), start=1)
    ]


class Probe:
    """Compares the gradient of each stage with that of the sample whose `squared` it carries.

    The true one is that of the whole network with the weights from before the step. Give `clips`
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
            torch.autograd.backward((networks.squared(out, y),))
        return [_flat(stage.parameters()) for stage in self._twin]


def _flat(parameters: Iterable[nn.Parameter]) -> Tensor:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return torch.cat([gradient.detach().flatten() for gradient in gradients])
