"""Balanced samples of candidates: high, middle and low ones in the ratios of the settings."""

from typing import Any

import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.proposals.settings import EvaluatorSettings


def sampling_rates(targets: Float64, settings: EvaluatorSettings) -> Float64:
    """Return the rate at which each candidate is sampled, so that the classes are balanced.

    High candidates (tIoU above `high_threshold`) are all taken; of the middle and of the low ones
    (below `low_threshold`) as many as `middle_ratio` and `low_ratio` for each high one, or all
    there are. Where no candidate is high the middle ones replace them, and where none is middle
    either, all low ones are taken.

    Args:
        targets: (M,) best tIoU of each candidate with the truth.
        settings: Thresholds and ratios.

    Returns:
        (M,) rates in 0…1; not all 0 unless M is 0.
    """
    rates = np.zeros(len(targets))
    unit = 0.0  # how many candidates a ratio of 1 means
    ratios = (1.0, settings.middle_ratio, settings.low_ratio)
    for members, ratio in zip(_classes(targets, settings), ratios, strict=True):
        if len(members):
            unit = unit or len(members) / ratio
            rates[members] = min(1.0, ratio * unit / len(members))
    return rates


def balanced_sample(
    targets: Float64, settings: EvaluatorSettings, generator: np.random.Generator
) -> Int64:
    """Draw high, middle and low candidates at their rates, as many of each every time.

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


def _classes(targets: Float64, settings: EvaluatorSettings) -> tuple[Int64, Int64, Int64]:
    """Return the indexes of the high, the middle and the low candidates."""
    high = targets > settings.high_threshold
    low = targets < settings.low_threshold
    return high.nonzero()[0], (~high & ~low).nonzero()[0], low.nonzero()[0]


class Sampler:
    """Draws a new sample for each epoch; its random numbers are part of a checkpoint."""

    def __init__(self, targets: Float64, settings: EvaluatorSettings) -> None:
        self.targets, self.settings = targets, settings
        self._generator = np.random.default_rng(settings.seed)

    def draw(self) -> Int64:
        """Return the next `balanced_sample`."""
        return balanced_sample(self.targets, self.settings, self._generator)

    def state(self) -> Any:
        """Return the state of the random numbers."""
        return self._generator.bit_generator.state

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""
        self._generator.bit_generator.state = state
