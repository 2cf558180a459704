"""The knobs of paper 003's experiments: which runs are compared, and their intervals."""

import itertools
import math
import re
from dataclasses import dataclass

from actionspan.settings import option


@dataclass(frozen=True, kw_only=True)
class ExperimentSettings:
    """What the figures, tables and verdicts of paper 003 compare."""

    seeds: int = option(3, "trainings of each way of joining learners")
    intervals: str = option("1,2,4,8", "values of K by commas; an average an epoch is beside them")
    learning_rates: str = option("0.0003,0.001,0.003", "rates that are tried, by commas")
    rate_seeds: int = option(1, "trainings with each of these rates")
    confidence: float = option(0.95, "of the intervals, in (0, 1)")
    resamples: int = option(1000, "bootstrap resamples of the validation clips")

    def __post_init__(self) -> None:
        for name in ("seeds", "rate_seeds", "resamples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)}: at least 1")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence {self.confidence}: between 0 and 1")
        self.steps()
        self.rates()

    def steps(self) -> list[int]:
        """Return the values of K.

        Raises:
            ValueError: They are not rising whole numbers, 1 at least.
        """
        words = _words(self.intervals)
        if not all(re.fullmatch("[1-9][0-9]*", word) for word in words) or not _rise(words):
            raise ValueError(
                f"intervals {self.intervals!r}: rising whole numbers by commas, e.g. '1,2,4,8'"
            )
        return [int(word) for word in words]

    def rates(self) -> list[str]:
        """Return the learning rates as they are written.

        Raises:
            ValueError: They are not rising numbers above 0.
        """
        words = _words(self.learning_rates)
        form = r"[0-9]*\.?[0-9]+(e-[0-9]+)?"  # what stands in the name of a run
        if not all(re.fullmatch(form, word) for word in words) or not _rise(words):
            raise ValueError(
                f"learning_rates {self.learning_rates!r}: rising numbers above 0 by commas, e.g. "
                "'0.0001,0.0003'"
            )
        return words


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _rise(words: list[str]) -> bool:
    numbers = [0.0, *map(float, words)]
    return numbers[-1] < math.inf and all(a < b for a, b in itertools.pairwise(numbers))
