"""The knobs of paper 003's experiments: which runs are compared, and their intervals."""

from dataclasses import dataclass
from decimal import Decimal

from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class ExperimentSettings(Checked):
    """What the figures, tables and verdicts of paper 003 compare."""

    seeds: int = option(3, "trainings of each way of joining learners", least=1, most=1_000)
    intervals: tuple[int, ...] = option(
        (1, 2, 4, 8),
        "values of K to compare, in addition to one average an epoch",
        least=1,
        fewest=1,
        rising=True,
    )
    learning_rates: tuple[float, ...] = option(
        (0.0003, 0.001, 0.003),
        "rates to try for AAVG and for one learner alone",
        above=0,
        fewest=1,
        rising=True,
    )
    rate_seeds: int = option(1, "trainings with each of these rates", least=1, most=1_000)
    confidence: float = option(0.95, "level of the confidence intervals", above=0, below=1)
    resamples: int = option(
        1000, "bootstrap resamples of the validation clips", least=1, most=1_000_000
    )

    def rates(self) -> list[str]:
        """Return the learning rates as they are in the names of runs."""
        return [f"{Decimal(repr(rate)):f}" for rate in self.learning_rates]
