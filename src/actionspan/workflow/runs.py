"""The grammar of the names of runs, and sections of the configuration as flags.

`mtn-seed2` is the second seed of the model mtn, `mtn-fold3` the model trained without the third
fold of the training videos, `mtn-folds` all folds of it together; a seed stands before a fold.
`aavg3-k4-2` is a run of recognition: AAVG3 with an average every 4 steps of 2 learners;
`aavg4-epoch-2-seed2` one average an epoch, of a further seed; `none-k1-1` one learner alone;
`ring-k1-2-lr0.0003` gradients summed by the ring, with another learning rate.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast, get_args

from actionspan.parallel.settings import ON_CPUS, ExchangeName
from actionspan.recognition.settings import PARTS, Part


def one_of(names: Iterable[str]) -> str:
    """Return a pattern that matches exactly these names, and nothing where there are none."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def run_pattern() -> str:
    """Return the pattern of names like ring-4; `none` is for one rank."""
    several = [name for name in ON_CPUS if name != "none"]
    return f"none-1|({one_of(several)})-[1-9][0-9]*"


_SEED = "(?:-seed([2-9]|[1-9][0-9]+))?"
_FOLD = "(?:-fold(s|[1-9][0-9]*))?"
POOLED = "folds"

Variant = Literal["aavg1", "aavg2", "aavg3", "aavg4"]
# The parts of AAVG that each variant has on: one more than the variant before.
VARIANTS: Mapping[Variant, tuple[Part, ...]] = {
    variant: PARTS[:count] for count, variant in enumerate(get_args(Variant))
}
# The beginning of the name of a run of recognition: a variant of AAVG, or another exchange.
METHODS = (*VARIANTS, *(name for name in ON_CPUS if name != "aavg"))


@dataclass(frozen=True)
class RunName:
    """A model, baseline or method with its seed and fold: `str` of it is mtn-seed2-fold3."""

    base: str
    seed: int = 1
    fold: str = ""
    """`3` of mtn-fold3, `POOLED` of mtn-folds, empty for a run on all training videos."""

    @classmethod
    def of(cls, name: str) -> "RunName":
        """Return the parts of a name.

        Raises:
            ValueError: It is empty.
        """
        match = re.fullmatch(f"(.+?){_SEED}{_FOLD}", name, re.DOTALL)
        if match is None:
            raise ValueError("an empty name")
        fold = POOLED if match[3] == "s" else match[3] or ""
        return cls(match[1], int(match[2] or 1), fold)

    def __str__(self) -> str:
        """Return the name."""
        seed = f"-seed{self.seed}" if self.seed > 1 else ""
        fold = "-folds" if self.fold == POOLED else f"-fold{self.fold}" if self.fold else ""
        return f"{self.base}{seed}{fold}"


def seeded(names: Iterable[str]) -> str:
    """Return a pattern of these names and all their seeds; no name matches nothing."""
    return f"({'|'.join(map(re.escape, names)) or '(?!)'}){_SEED}"


@dataclass(frozen=True)
class Learning:
    """How learners are joined in a run of recognition; None: as configured."""

    exchange: ExchangeName
    interval: int
    """K, the steps between two averages; -1: one average an epoch."""
    learners: int
    variant: Variant | None = None
    learning_rate: str | None = None
    seed: int = 1
    """1 is the configured seed, 2 the next, and so on."""

    PATTERN: ClassVar[str] = (
        f"({'|'.join(METHODS)})-(k[1-9][0-9]*|epoch)-([1-9][0-9]*)"
        f"(?:-lr([0-9.]+(?:e-[0-9]+)?))?{_SEED}"
    )

    @classmethod
    def of_name(cls, name: str) -> "Learning":
        """Return the run of a name; a ValueError where it is none."""
        match = re.fullmatch(cls.PATTERN, name)
        if match is None:
            raise ValueError(f"{name!r}: not the name of a run like aavg3-k4-2-seed2")
        method, interval, learners, rate, seed = match.groups()
        averaging = method in VARIANTS
        return cls(
            exchange=cast(ExchangeName, "aavg" if averaging else method),
            interval=-1 if interval == "epoch" else int(interval[1:]),
            learners=int(learners),
            # AAVG's parts belong to AAVG alone
            variant=cast(Variant, method) if averaging else "aavg1",
            learning_rate=rate,
            seed=int(seed or 1),
        )

    @property
    def method(self) -> str:
        """Return the beginning of the name: the variant of AAVG, or the exchange."""
        return str(self.variant if self.exchange == "aavg" else self.exchange)

    @property
    def way(self) -> str:
        """Return the method and how often it averages, e.g. aavg1-k4."""
        return f"{self.method}-{'epoch' if self.interval == -1 else f'k{self.interval}'}"

    @property
    def name(self) -> str:
        """Return the name of the run."""
        rate = f"-lr{self.learning_rate}" if self.learning_rate else ""
        return str(RunName(f"{self.way}-{self.learners}{rate}", self.seed))

    def trained_as(self, stream: str) -> "Learning":
        """Return the run that trains the network of a stream for this run.

        AAVG4 is AAVG3 but for where flow starts, so their RGB networks are the same to the bit.
        """
        shared = stream == "rgb" and self.method == "aavg4"
        return replace(self, variant="aavg3") if shared else self

    def applied(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings of recognition, changed to this run's."""
        changed = {**settings, "averaging_steps": self.interval}
        changed["seed"] += self.seed - 1
        if self.variant is not None:
            changed["aavg"] = list(VARIANTS[self.variant])
        if self.learning_rate is not None:
            changed["learning_rate"] = float(self.learning_rate)
        return changed


def flags(section: Mapping[str, Any], *keys: str) -> str:
    """Return a section of the configuration, or some of its keys, as command-line flags.

    True becomes `--key`, false `--no-key`, a list `--key first second`, null nothing.
    """
    words: list[str] = []
    for key, value in section.items():
        flag = key.replace("_", "-")
        if (keys and key not in keys) or value is None:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, list | tuple):
            words += [f"--{flag}", *(shlex.quote(str(item)) for item in value)]
        else:
            words.append(f"--{flag}={shlex.quote(str(value))}")
    return " ".join(words)


def seeded_flags(section: Mapping[str, Any], name: str, *keys: str) -> str:
    """Return a section as flags, with the seed of a name such as mtn-seed2."""
    return flags({**section, "seed": section["seed"] + RunName.of(name).seed - 1}, *keys)
