"""How the stages of a pipeline learn: loss, optimisers, schedules, clipping and gradient mode."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from actionspan.streaming.messages import Value

Gradients = Literal["paper", "inputs", "stash"]
"""Where the Jacobian of a stage is taken when a gradient reaches it.

`paper`: at the input that the stage holds now; `inputs`: at the input which the gradient belongs
to, with the weights of now; `stash`: at that input with the weights that saw it (PipeDream's).
"""
Loss = Callable[[Value, Value], Tensor]
MakeOptimiser = Callable[[list[nn.Parameter]], Optimizer]
MakeSchedule = Callable[[Optimizer], LRScheduler]
Clip = float | Callable[[Iterable[nn.Parameter]], object]
Each = TypeVar("Each")
# How an optimiser computes, not what: its own device decides, not a loaded state's.
_HOW = ("capturable", "differentiable", "foreach", "fused")


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How one stage learns; `loss` is asked of the last stage alone."""

    loss: Loss
    optimiser: MakeOptimiser | None
    schedule: MakeSchedule | None
    clip: Clip | None
    gradients: Gradients


def learning_of_stages(
    stages: int,
    loss: Loss | None,
    optimiser: MakeOptimiser | Sequence[MakeOptimiser | None] | None,
    schedule: MakeSchedule | Sequence[MakeSchedule | None] | None,
    clip: Clip | Sequence[Clip | None] | None,
    gradients: str,
) -> Sequence[Learning | None]:
    """Return how each stage learns; a single value holds for all; None: without a loss.

    Raises:
        ValueError: A sequence has another length, or the gradient mode does not exist.
    """
    if loss is None:
        return [None] * stages
    modes: tuple[Gradients, ...] = get_args(Gradients)
    if gradients not in modes:
        raise ValueError(f"gradients {gradients!r}: one of {', '.join(modes)}")
    mode = modes[modes.index(gradients)]
    makers, rates = _each("optimiser", optimiser, stages), _each("schedule", schedule, stages)
    limits: Sequence[Clip | None] = _each("clip", clip, stages)
    return [
        Learning(loss=loss, optimiser=makers[h], schedule=rates[h], clip=limits[h], gradients=mode)
        for h in range(stages)
    ]


def drain_steps(stages: int, gradients: str) -> int:
    """Return the steps without a sample after which the stages are empty."""
    if stages == 1:
        return 0
    # The paper's last gradients find no input; a step more, and they do not find the next stream's.
    return stages if gradients == "paper" else 2 * (stages - 1)


class Updater:
    """The optimiser of a stage's parameters, with its schedule and clipping.

    `captures`: its steps may become a graph; where none can, torch refuses `capturable`.
    """

    def __init__(
        self, parameters: list[nn.Parameter], learning: Learning, *, captures: bool
    ) -> None:
        assert learning.optimiser is not None
        self.parameters, self._clip = parameters, learning.clip
        self._forget()  # earlier gradients are not of this stream
        self.optimiser = learning.optimiser(parameters)
        for group in self.optimiser.param_groups:
            if group.get("capturable") and not captures:
                group |= {"capturable": False, "foreach": None}
        self.schedule = learning.schedule(self.optimiser) if learning.schedule else None

    def update(self) -> None:
        """Change the parameters by their gradients, and forget these."""
        if callable(self._clip):
            self._clip(self.parameters)
        elif self._clip is not None:
            clip_grad_norm_(self.parameters, self._clip)
        self.optimiser.step()
        self._forget()
        if self.schedule is not None:
            self.schedule.step()

    def load(self, state: dict[str, Any], schedule: Mapping[str, Any] | None) -> None:
        """Resume from the states of the optimiser and the schedule."""
        for own, group in zip(self.optimiser.param_groups, state["param_groups"], strict=False):
            group.update({name: own[name] for name in _HOW if name in own})
        self.optimiser.load_state_dict(state)
        if self.schedule is not None and schedule is not None:
            self.schedule.load_state_dict(dict(schedule))

    def _forget(self) -> None:
        """Forget all gradients, also of parameters that the optimiser leaves alone."""
        for parameter in self.parameters:
            parameter.grad = None


def _each(
    name: str, given: Each | Sequence[Each | None] | None, stages: int
) -> Sequence[Each | None]:
    if not isinstance(given, Sequence):
        return [given] * stages
    if len(given) != stages:
        raise ValueError(f"{name}: {len(given)} given for {stages} stages")
    return given
