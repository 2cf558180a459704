"""The learning rate of each epoch."""

import itertools
from collections.abc import Sequence


def decay_after(epochs: str) -> tuple[int, ...]:
    """Return epochs written by commas as numbers.

    Raises:
        ValueError: It is not a rising list of whole numbers, 1 at least.
    """
    try:
        after = tuple(int(word) for word in epochs.split(",") if word.strip())
    except ValueError:
        after = (0,)
    if any(epoch < 1 for epoch in after) or any(a >= b for a, b in itertools.pairwise(after)):
        raise ValueError(f"decay_epochs {epochs!r}: rising whole numbers by commas, e.g. '7,14'")
    return after


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
