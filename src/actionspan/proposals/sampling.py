"""Balanced samples of candidates: high, middle and low ones in the ratios of the settings."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float64
from actionspan.files.scratch import scratch
from actionspan.proposals.settings import EvaluatorSettings

_CLASSES = 3
_CHUNK = 1 << 16  # candidates

Sample = NDArray[np.uint32] | NDArray[np.int64]


def sampling_rates(
    targets: Float64, settings: EvaluatorSettings, counts: Sequence[int] | None = None
) -> Float64:
    """Return the rate at which each candidate is sampled, so that the classes are balanced.

    High candidates (tIoU above `high_threshold`) are all taken; of the middle and of the low ones
    (below `low_threshold`) as many as `middle_ratio` and `low_ratio` for each high one, or all
    there are. Where no candidate is high the middle ones replace them, and where none is middle
    either, all low ones are taken. Targets are the (M,) best tIoUs with the truth; rates (M,) are
    in 0…1, and not all 0 unless M is 0. `counts` are the `class_counts` of the set that the
    candidates are a part of; by default they are all of it.
    """
    rates = np.zeros(len(targets))
    known = class_counts(targets, settings) if counts is None else counts
    classes = range(len(known))
    for number, rate in zip(classes, _rates(known, settings), strict=True):
        rates[_is_class(number, targets, settings)] = rate
    return rates


def class_counts(targets: Float64, settings: EvaluatorSettings) -> list[int]:
    """Return how many candidates are high, middle and low."""
    counts = np.zeros(_CLASSES, np.int64)
    for rows in chunks(len(targets)):
        counts += [_is_class(number, targets[rows], settings).sum() for number in range(_CLASSES)]
    return counts.tolist()


def chunks(count: int) -> Iterator[slice]:
    """Yield slices of so many candidates: what is made of all at once would fill the memory."""
    for first in range(0, count, _CHUNK):
        yield slice(first, min(first + _CHUNK, count))


def balanced_sample(
    targets: Float64, settings: EvaluatorSettings, generator: np.random.Generator
) -> Sample:
    """Draw high, middle and low candidates at their rates, as many of each every time.

    The result is their indexes in random order, none twice.
    """
    counts = class_counts(targets, settings)
    small = np.uint32 if len(targets) <= np.iinfo(np.uint32).max else np.int64
    taken = [
        max(round(rate * count), 1) if count else 0
        for rate, count in zip(_rates(counts, settings), counts, strict=True)
    ]
    sample = scratch((sum(taken),), small)
    end = 0
    for number, (count, share) in enumerate(zip(counts, taken, strict=True)):
        members, filled = scratch((count,), small), 0
        for rows in chunks(len(targets)):
            found = rows.start + _is_class(number, targets[rows], settings).nonzero()[0]
            members[filled : filled + len(found)] = found
            filled += len(found)
        generator.shuffle(members)
        sample[end : end + share] = members[:share]
        end += share
    generator.shuffle(sample)
    return sample


def _rates(counts: Sequence[int], settings: EvaluatorSettings) -> list[float]:
    unit, rates = 0.0, []  # how many candidates a ratio of 1 means
    for count, ratio in zip(counts, (1.0, settings.middle_ratio, settings.low_ratio), strict=True):
        unit = unit or (count / ratio if count else 0.0)
        rates.append(min(1.0, ratio * unit / count) if count else 0.0)
    return rates


def _is_class(number: int, targets: Float64, settings: EvaluatorSettings) -> NDArray[np.bool_]:
    """Return which candidates are high (0), middle (1) or low (2)."""
    if number == 0:
        return targets > settings.high_threshold
    if number == 2:
        return targets < settings.low_threshold
    return ~((targets > settings.high_threshold) | (targets < settings.low_threshold))


class Sampler:
    """Draws a new sample for each epoch; its random numbers are part of a checkpoint."""

    def __init__(self, targets: Float64, settings: EvaluatorSettings) -> None:
        self.targets, self.settings = targets, settings
        self._generator = np.random.default_rng(settings.seed)

    def draw(self) -> Sample:
        """Return the next `balanced_sample`."""
        return balanced_sample(self.targets, self.settings, self._generator)

    def state(self) -> Any:
        """Return the state of the random numbers."""
        return self._generator.bit_generator.state

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""
        self._generator.bit_generator.state = state
