"""Settings and flags that several trainings share, on one process or on many."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from actionspan.parallel.settings import ON_CPUS, ExchangeName

Keep = Literal["best", "average", "last"]
"""The weights of the epoch with the highest score, the mean of the last few, or the last's."""


def rate_after(rate: float, factor: float, after: Sequence[int], epoch: int) -> float:
    """Return the rate in `epoch` (from 1), multiplied by `factor` after some epochs."""
    return rate * factor ** sum(epoch > fall for fall in after)


def rate_every(rate: float, factor: float, every: int, epoch: int) -> float:
    """Return the rate in `epoch` (from 1), multiplied by `factor` after each `every` epochs."""
    for _ in range((epoch - 1) // every):  # as torch's StepLR: a power may differ in the last bit
        rate *= factor
    return rate


def add_training_flags(
    parser: argparse.ArgumentParser,
    *,
    exchange: ExchangeName,
    how: str,
    workers: str,
    count: str,
    files: str,
) -> None:
    """Add `--exchange` (its help: `how`), the flag `workers` (`count`), and the flags of a run."""
    parser.add_argument(
        "--exchange", choices=ON_CPUS, default=exchange, help=f"{how} (default: {exchange})"
    )
    parser.add_argument(workers, type=int, default=1, help=f"{count} (default: 1)")
    add_run_flags(parser, files)


def add_run_flags(parser: argparse.ArgumentParser, files: str) -> None:
    """Add `--threads`, `--resume` and `--out`; `files` are those it writes."""
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads; the model's bits depend on them"
    )
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="resume from a checkpoint in the folder, if there is one (default: yes)",
    )
    parser.add_argument("--out", type=Path, required=True, help=f"folder for {files}")
