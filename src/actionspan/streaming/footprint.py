"""How many bytes a stage needs, by the closed form.

Weights + gradients + optimiser state + saved tensors of one sample + 2 input messages + 2 gradient
messages (not the last stage) + D targets (the last) + what the gradient mode keeps: nothing
(`paper`), 2 (D - h) inputs (`inputs`), or these and as many versions of the weights (`stash`).
A process also has a copy of each message that it works on, so that its stage may keep it.
"""

from dataclasses import asdict, dataclass

from actionspan.streaming.learning import Gradients
from actionspan.streaming.sockets import SLOTS


@dataclass(frozen=True, kw_only=True)
class StageBytes:
    """The bytes of a stage by what they hold."""

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
    """Return the bytes of stage `index` (from 0) of a pipeline that learns.

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
