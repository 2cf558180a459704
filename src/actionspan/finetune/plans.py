"""How much memory a tuning takes: asked before the first step, of the longest training video."""

from contextlib import suppress
from functools import partial

from torch import Tensor, nn

from actionspan.errors import InputError
from actionspan.finetune.encoders import StreamEncoders
from actionspan.finetune.objectives import Objective, Target
from actionspan.finetune.pictures import BlankFrames
from actionspan.finetune.preparation import Task, build_objective
from actionspan.finetune.projection import unfitted
from actionspan.memory.planning import MEGABYTE, MemoryPlan, plan_memory

_HELD_SHARE = 0.2  # of the budget, above which pictures are not held in memory


class _Head(nn.Module):
    """The loss of a video's features, with all that it needs inside."""

    def __init__(self, objective: Objective, target: Target) -> None:
        super().__init__()
        self.objective, self.target = objective, target

    def forward(self, features: Tensor) -> Tensor:
        return self.objective.loss(features, self.target, self.target.labels)


def plan_tuning(task: Task, encoders: StreamEncoders) -> MemoryPlan:
    """Return the plan of a tuning; nothing of it depends on what the pictures show.

    Pictures are held in memory where that takes little of the budget: the plan's `picture_bytes`
    are above 0 then.

    Raises:
        InputError: The budget is too small; the line names the least.
    """
    settings = task.settings
    widths = {str(stream): width for stream, width in encoders.features.items()}
    objective = build_objective(task, unfitted(task.rescaling, widths))
    longest = max(task.videos.training, key=lambda video: len(video.times))
    head = _Head(objective, objective.target(longest))
    blank = partial(BlankFrames, len(longest.times), settings, task.store.planes)

    def planned(frames: BlankFrames) -> MemoryPlan:
        return plan_memory(
            encoders,
            head,
            frames,
            settings.memory_budget_mb,
            None if settings.keep_ratio == "auto" else settings.keep_ratio,
            way=settings.way,
            execution=settings.execution,
            sampler=settings.sampler,
            videos=len(task.videos.training),
        )

    held = blank(held=True)
    if held.nbytes <= _HELD_SHARE * settings.memory_budget_mb * MEGABYTE:
        with suppress(ValueError):  # it may fit without them
            return planned(held)
    try:
        return planned(blank(held=False))
    except ValueError as error:
        raise InputError(f"finetune: {error}") from None


def described(plan: MemoryPlan) -> str:
    """Return a plan in one line."""
    return (
        f"{plan.way}, {plan.execution} in pieces of {plan.piece}, keep ratio {plan.keep_ratio:g}: "
        f"at most {plan.expected_bytes / MEGABYTE:.0f} MB of {plan.budget_bytes / MEGABYTE:.0f} MB,"
        f" for videos of up to {plan.longest} snippets"
    )
