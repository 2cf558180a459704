"""Balanced samples of candidates: as many high, middle and low ones as the ratios say."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan.proposals.settings import EvaluatorSettings

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def sampling_rates(targets: Array, settings: EvaluatorSettings) -> Array:
    """Return the share at which each candidate is sampled, so that the classes are balanced.

    High candidates (tIoU above `high_threshold`) are all taken; of the middle and of the low ones
    (below `low_threshold`) as many as `middle_ratio` and `low_ratio` for each high one, or all
    there are. Where no candidate is high the middle ones stand for them, and where none is middle
    either, all low ones are taken.

    Args:
        targets: (M,) best tIoU of each candidate with the truth.
        settings: Thresholds and ratios.

    Returns:
        (M,) rates in 0…1; not all 0 unless M is 0.
    """
    rates = np.zeros(len(targets))
    unit = 0.0  # how many candidates stand for a ratio of 1
    ratios = (1.0, settings.middle_ratio, settings.low_ratio)
    for members, ratio in zip(_classes(targets, settings), ratios, strict=True):
        if len(members):
            unit = unit or len(members) / ratio
            rates[members] = min(1.0, ratio * unit / len(members))
    return rates


def balanced_sample(
    targets: Array, settings: EvaluatorSettings, generator: np.random.Generator
) -> Rows:
    """Draw high, middle and low candidates at their rates, as many of each every time.

    Args:
        targets: (M,) best tIoU of each candidate with the truth.
        settings: Thresholds and ratios.
        generator: Where the random numbers come from.

    Returns:
        Indexes of the drawn candidates, in random order, none twice.
    """
    rates = sampling_rates(targets, settings)
    drawn = [
        generator.permutation(members)[: max(round(rates[members[0]] * len(members)), 1)]
        for members in _classes(targets, settings)
        if len(members)
    ]
    return generator.permutation(np.concatenate(drawn)) if drawn else np.zeros(0, np.int64)


def _classes(targets: Array, settings: EvaluatorSettings) -> tuple[Rows, Rows, Rows]:
    """Return the indexes of the high, the middle and the low candidates."""
    high = targets > settings.high_threshold
    low = targets < settings.low_threshold
    return high.nonzero()[0], (~high & ~low).nonzero()[0], low.nonzero()[0]


class Sampler:
    """Draws a new sample for each epoch; its random numbers are part of a checkpoint."""

    def __init__(self, targets: Array, settings: EvaluatorSettings) -> None:
        self.targets, self.settings = targets, settings
        self._generator = np.random.default_rng(settings.seed)

    def draw(self) -> Rows:
        """Return the next `balanced_sample`."""
        return balanced_sample(self.targets, self.settings, self._generator)

    def state(self) -> Any:
        """Return where the random numbers are."""
        return self._generator.bit_generator.state

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""
        self._generator.bit_generator.state = state
