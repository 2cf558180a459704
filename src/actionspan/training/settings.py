"""Settings that several trainings share."""

from collections.abc import Sequence
from typing import Literal

Keep = Literal["best", "average", "last"]
"""The weights of the epoch with the highest score, the mean of the last few, or the last's."""


def rate_after(rate: float, factor: float, after: Sequence[int], epoch: int) -> float:
    """Return the rate in `epoch` (from 1), multiplied by `factor` after some epochs."""
    return rate * factor ** sum(epoch > fall for fall in after)


def rate_every(rate: float, factor: float, every: int, epoch: int) -> float:
    """Return the rate in `epoch` (from 1), multiplied by `factor` after each `every` epochs."""
    for _ in range((epoch - 1) // every):  # as torch's StepLR: a power may differ in the last bit
        rate *= factor
    return rate
