"""Runs of recognition by name: which way of joining learners, how often, how many, which seed.

`aavg3-k4-2` is AAVG3 with an average every 4 steps of 2 learners; `aavg4-epoch-2-seed2` one average
an epoch, of a further seed; `none-k1-1` one learner alone; `ring-k1-2-lr0.0003` gradients summed by
the ring, with another learning rate.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

from actionspan.parallel.settings import ON_CPUS, ExchangeName
from actionspan.recognition.settings import PARTS, Part

Variant = Literal["aavg1", "aavg2", "aavg3", "aavg4"]
# The parts of AAVG that each variant has on: one more than the variant before.
VARIANTS: Mapping[Variant, tuple[Part, ...]] = {
    "aavg1": PARTS[:0],
    "aavg2": PARTS[:1],
    "aavg3": PARTS[:2],
    "aavg4": PARTS[:3],
}

# What a run's name begins with: a variant of AAVG, or an exchange that is none.
METHODS = (*VARIANTS, *(e for e in ON_CPUS if e != "aavg"))


@dataclass(frozen=True)
class Learning:
    """How learners are joined in a run.

    Attributes:
        exchange: How they are joined.
        interval: K, or -1 for an epoch; of averaging alone.
        learners: How many there are.
        variant: Which parts of AAVG are on; None: as configured.
        learning_rate: None: as configured.
        seed: 1 is the configured one, 2 the next, and so on.
    """

    exchange: ExchangeName
    interval: int
    learners: int
    variant: Variant | None = None
    learning_rate: str | None = None
    seed: int = 1

    PATTERN: ClassVar[str] = (
        f"({'|'.join(METHODS)})-(k[1-9][0-9]*|epoch)-[1-9][0-9]*"
        "(-lr[0-9.]+(e-[0-9]+)?)?(-seed([2-9]|[1-9][0-9]+))?"
    )

    @classmethod
    def of_name(cls, name: str) -> "Learning":
        """Return the run of a name.

        Raises:
            ValueError: It is none.
        """
        if not re.fullmatch(cls.PATTERN, name):
            raise ValueError(f"{name!r}: no name of a run like aavg3-k4-2-seed2")
        text, _, seed = name.partition("-seed")
        text, _, rate = text.partition("-lr")
        method, interval, learners = text.split("-")
        averaging = method in VARIANTS
        return cls(
            exchange=cast(ExchangeName, "aavg" if averaging else method),
            interval=-1 if interval == "epoch" else int(interval[1:]),
            learners=int(learners),
            # what stands beside AAVG has none of its parts
            variant=cast(Variant, method) if averaging else "aavg1",
            learning_rate=rate or None,
            seed=int(seed or 1),
        )

    @property
    def method(self) -> str:
        """Return what the name begins with: the variant of AAVG, or the exchange."""
        return str(self.variant if self.exchange == "aavg" else self.exchange)

    @property
    def way(self) -> str:
        """Return the method and how often it averages, e.g. aavg1-k4."""
        return f"{self.method}-{'epoch' if self.interval == -1 else f'k{self.interval}'}"

    @property
    def name(self) -> str:
        """Return the name of the run."""
        rate = f"-lr{self.learning_rate}" if self.learning_rate else ""
        seed = f"-seed{self.seed}" if self.seed > 1 else ""
        return f"{self.way}-{self.learners}{rate}{seed}"

    def trained_as(self, stream: str) -> "Learning":
        """Return the run that trains this one's network of a stream.

        AAVG4 is AAVG3 but for where flow starts, so their RGB networks are the same to the bit.
        """
        if stream == "rgb" and self.method == "aavg4":
            return replace(self, variant="aavg3")
        return self

    def applied(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings of recognition as this run has them."""
        changed = {**settings, "averaging_steps": self.interval}
        changed["seed"] += self.seed - 1
        if self.variant is not None:
            changed["aavg"] = list(VARIANTS[self.variant])
        if self.learning_rate is not None:
            changed["learning_rate"] = float(self.learning_rate)
        return changed
