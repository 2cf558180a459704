"""The flags that the steps share which train on one process or on many."""

import argparse
from pathlib import Path

from actionspan.parallel.settings import ON_CPUS, ExchangeName


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
