"""Runs by name: the grammar of the names, and the reader of files of many runs and seeds.

`mtn-seed2` is the second seed of the model mtn, `mtn-fold3` the model trained without the third
fold of the training videos, `mtn-folds` all folds of it together; a seed stands before a fold.
`aavg3-k4-2` is a run of recognition: AAVG3 with an average every 4 steps of 2 learners;
`aavg4-epoch-2-seed2` one average an epoch, of a further seed; `none-k1-1` one learner alone;
`ring-k1-2-lr0.0003` gradients summed by the ring, with another learning rate.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.files.storage import read_tsv
from actionspan.parallel.settings import ON_CPUS, ExchangeName
from actionspan.recognition.settings import PARTS, Part

_SEED = "(?:-seed([2-9]|[1-9][0-9]+))?"
_FOLD = "(?:-fold(s|[1-9][0-9]*))?"
POOLED = "folds"

Variant = Literal["aavg1", "aavg2", "aavg3", "aavg4"]
# The parts of AAVG that each variant has on: one more than the variant before.
VARIANTS: Mapping[Variant, tuple[Part, ...]] = {
    "aavg1": PARTS[:0],
    "aavg2": PARTS[:1],
    "aavg3": PARTS[:2],
    "aavg4": PARTS[:3],
}
# What the name of a run of recognition begins with: a variant of AAVG, or another exchange.
METHODS = (*VARIANTS, *(name for name in ON_CPUS if name != "aavg"))

Key = TypeVar("Key", bound=Hashable)


def split_seed(name: str) -> tuple[str, int]:
    """Return a name and seed: mtn and 2 of mtn-seed2 and of its folds; a ValueError if empty."""
    match = re.fullmatch(f"(.+?){_SEED}{_FOLD}", name, re.DOTALL)
    if match is None:
        raise ValueError("an empty name")
    return match[1], int(match[2] or 1)


def split_fold(name: str) -> tuple[str, str]:
    """Return a name and fold: mtn-seed2 and "3" of mtn-seed2-fold3.

    The fold of mtn is "", and of mtn-folds it is `POOLED`.
    """
    match = re.fullmatch(f"(.+?){_FOLD}", name, re.DOTALL)
    assert match is not None, "an empty name"
    return match[1], POOLED if match[2] == "s" else match[2] or ""


def with_seed(name: str, seed: int) -> str:
    """Return the name of a seed: mtn of mtn and 1, mtn-seed2 of mtn and 2."""
    return f"{name}-seed{seed}" if seed > 1 else name


def seeded(names: Iterable[str]) -> str:
    """Return a pattern of these names and all their seeds; no name matches nothing."""
    return f"({'|'.join(map(re.escape, names)) or '(?!)'}){_SEED}"


@dataclass(frozen=True)
class Learning:
    """How learners are joined in a run of recognition; what is None is as configured."""

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
        return with_seed(f"{self.way}-{self.learners}{rate}", self.seed)

    def trained_as(self, stream: str) -> "Learning":
        """Return the run whose network of a stream this run uses.

        AAVG4 is AAVG3 but for where flow starts, so their RGB networks are the same to the bit.
        """
        shared = stream == "rgb" and self.method == "aavg4"
        return replace(self, variant="aavg3") if shared else self

    def applied(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings of recognition, changed to those of this run."""
        changed = {**settings, "averaging_steps": self.interval}
        changed["seed"] += self.seed - 1
        if self.variant is not None:
            changed["aavg"] = list(VARIANTS[self.variant])
        if self.learning_rate is not None:
            changed["learning_rate"] = float(self.learning_rate)
        return changed


def by_seed(runs: Iterable[tuple[Key, int, Path]]) -> dict[Key, dict[int, Path]]:
    """Return the file of each seed of each run, seeds rising, runs in the order given.

    Raises:
        InputError: Two files are of one run and seed.
    """
    files: dict[Key, dict[int, Path]] = {}
    for key, seed, path in runs:
        seeds = files.setdefault(key, {})
        if seed in seeds:
            name = with_seed(key if isinstance(key, str) else key[0], seed)  # type: ignore[index]
            raise InputError(f"{path}: {name} is in {seeds[seed]} already")
        seeds[seed] = path
    return {key: dict(sorted(seeds.items())) for key, seeds in files.items()}


def named_files(
    names: Iterable[str], paths: Iterable[Path], form: str
) -> dict[str, dict[int, Path]]:
    """Return the file of each seed of each method or model, by names such as mtn-seed2.

    `form` says how their paths should look, for the message.

    Raises:
        InputError: A name is empty, or two files are of one method and seed.
    """
    files = list(zip(names, paths, strict=True))
    for name, path in files:
        if not name:
            raise InputError(f"{path}: its path names no method; the form is {form}")
    return by_seed((*split_seed(name), path) for name, path in files)


def read_logs(
    files: Mapping[Key, Mapping[int, Path]], columns: Sequence[str], *, all_alike: bool
) -> dict[Key, Float64]:
    """Read logs of training: (columns, S, E) numbers of each run.

    Raises:
        InputError: A file is no log, or has another number of epochs than the first file of the
            run (or of all runs, if they must be `all_alike`).
    """
    logs = {}
    first: tuple[Path, int] | None = None  # and its epochs
    for key, seeds in files.items():
        tables = []
        first = first if all_alike else None
        for path in seeds.values():
            table = _read_log(path, columns)
            first = first or (path, len(table))
            if len(table) != first[1]:
                raise InputError(f"{path}: {len(table)} epochs, {first[0]} has {first[1]}")
            tables.append(table)
        logs[key] = np.array(tables).transpose(2, 0, 1)
    return logs


def _read_log(path: Path, columns: Sequence[str]) -> list[list[float]]:
    """Return a row of numbers an epoch."""
    table: list[list[float]] = []
    for number, row in enumerate(read_tsv(path), start=2):
        table.append([])
        for column in columns:
            try:
                table[-1].append(float(row[column]))
            except (KeyError, ValueError):
                raise InputError(f"{path}: row {number}: no number {column!r}") from None
    if not table:
        raise InputError(f"{path}: no epoch")
    return table
