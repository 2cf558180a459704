"""The learning rate of each epoch."""

from collections.abc import Sequence


def rate_after(rate: float, factor: float, after: Sequence[int], epoch: int) -> float:
    """Return the rate in `epoch` (from 1) that is multiplied by `factor` after some epochs."""
    return rate * factor ** sum(epoch > fall for fall in after)


def rate_every(rate: float, factor: float, every: int, epoch: int) -> float:
    """Return the rate in `epoch` (from 1) that is multiplied by `factor` after each `every` epochs.

    It is multiplied again and again, as by torch's StepLR: a power may differ in the last bit.
    """
    for _ in range((epoch - 1) // every):
        rate *= factor
    return rate
