"""The gradients that stages of a pipeline use, held against the true ones."""

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.streaming.learning import Loss


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
            torch.autograd.backward((self._loss(out, y),))
        return [_flat(stage.parameters()) for stage in self._twin]


def _flat(parameters: Iterable[nn.Parameter]) -> Tensor:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return torch.cat([gradient.detach().flatten() for gradient in gradients])
