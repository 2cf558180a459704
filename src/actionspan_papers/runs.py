"""The reader of files of many runs and seeds."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan.workflow.runs import RunName

Key = TypeVar("Key", bound=Hashable)


def by_seed(runs: Iterable[tuple[Key, int, Path]]) -> dict[Key, dict[int, Path]]:
    """Return the file of each seed of each run, seeds rising, runs in the order given.

    Raises:
        InputError: Two files are of one run and seed.
    """
    files: dict[Key, dict[int, Path]] = {}
    for key, seed, path in runs:
        seeds = files.setdefault(key, {})
        if seed in seeds:
            name = RunName(key if isinstance(key, str) else key[0], seed)  # type: ignore[index]
            raise InputError(f"{path}: {name} is in {seeds[seed]} already")
        seeds[seed] = path
    return {key: dict(sorted(seeds.items())) for key, seeds in files.items()}


def named_files(
    names: Iterable[str], paths: Iterable[Path], form: str
) -> dict[str, dict[int, Path]]:
    """Return the file of each seed of each method or model, by names such as mtn-seed2.

    `form` is the right form of their paths, for the message.

    Raises:
        InputError: A name is empty, or two files are of one method and seed.
    """
    files = list(zip(names, paths, strict=True))
    for name, path in files:
        if not name:
            raise InputError(f"{path}: its path names no method; the form is {form}")
    runs = [(RunName.of(name), path) for name, path in files]
    return by_seed((run.base, run.seed, path) for run, path in runs)


def read_logs(
    files: Mapping[Key, Mapping[int, Path]], columns: Sequence[str], *, all_alike: bool
) -> dict[Key, Float64]:
    """Read logs of training: (columns, S, E) numbers of each run.

    Raises:
        InputError: A file is not a log, or has another number of epochs than the first file of the
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
