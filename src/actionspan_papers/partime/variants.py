"""The ways of learning that are compared: how many stages, and which gradients they use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import nn

Mode = Literal["paper", "inputs", "stash"]
MODES: tuple[Mode, ...] = ("paper", "inputs", "stash")


LAST_ONLY = "last stage only"
"""Only the last stage learns, as in the paper's public code with CUDA graph."""


@dataclass(frozen=True)
class Variant:
    """A number of stages and a gradient mode, or `LAST_ONLY`; one stage is plain training."""

    stages: int
    mode: str

    @property
    def gradients(self) -> Mode:
        """The mode that the pipeline has."""
        return next((mode for mode in MODES if mode == self.mode), "paper")

    @property
    def name(self) -> str:
        """How reports call it."""
        return "sequential" if self.stages == 1 else f"D = {self.stages}, {self.mode}"

    def freeze(self, stages: "Sequence[nn.Module]") -> None:
        """Freeze the stages that do not learn."""
        if self.mode == LAST_ONLY:
            for stage in stages[:-1]:
                stage.requires_grad_(False)


def variants(stages: Sequence[int], *, last_only: bool) -> list[Variant]:
    """Return plain training, and every mode at every number of stages."""
    modes = [*MODES, LAST_ONLY] if last_only else list(MODES)
    return [Variant(1, "paper"), *(Variant(count, mode) for count in stages for mode in modes)]
