"""The flags that all steps on a shard share, and how they work on its videos."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from actionspan.jobs.memory import workers_within
from actionspan.settings import Checked, add_settings, at_least_one, from_arguments, option

VIDEOS = "videos at once, one core each"
_WORKER_BYTES = 10**9  # of a process with the networks of a model
_PLACES = "where its videos are now, by their names (default: the paths of the table)"


@dataclass(frozen=True, kw_only=True)
class FaultSettings(Checked):
    """What to do when the work on a video fails."""

    on_bad_input: Literal["skip", "fail"] = option(
        "skip", "note the reason and continue with the other videos, or stop after them"
    )
    stall_seconds: float = option(
        600.0,
        "the work on a video is ended after so long without progress; 0: never",
        unit="seconds",
        least=0,
    )


@dataclass(frozen=True, kw_only=True)
class ShardWork:
    """How to work on the videos or clips of a shard."""

    processes: int = 1  # videos at once
    threads: int = 1  # CPU threads of each process
    faults: FaultSettings = field(default_factory=FaultSettings)


def add_shard_flags(
    parser: argparse.ArgumentParser,
    *settings: type,
    inputs: Mapping[str, str] | None = None,
    processes: str = "",
    threads: str = "",
    out: str = "HDF5 file to write",
) -> None:
    """Add the flags of a step that works on a shard.

    Args:
        parser: Of the step.
        *settings: Dataclasses of settings; the settings of faults are added to them.
        inputs: The help texts of the flags that name a file to read.
        processes: What `--processes` counts; empty: the flag is left out.
        threads: What `--threads` counts; empty: the flag is left out.
        out: The help text of `--out`.
    """
    for name, text in (inputs or {}).items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=text)
    for name, counted in (("processes", processes), ("threads", threads)):
        if counted:
            text = f"{counted} (default: 1)"
            parser.add_argument(f"--{name}", type=int, default=1, help=text)
    parser.add_argument("--out", type=Path, required=True, help=out)
    for each in (*settings, FaultSettings):
        add_settings(parser, each)


def add_jobs(parser: argparse._ActionsContainer) -> None:
    """Add the option of commands that work on several videos at once."""
    text = "videos processed at once (default: the number that cores and memory allow)"
    parser.add_argument("--jobs", type=int, metavar="N", help=text)


def videos_at_once(jobs: int | None, videos: int, threads: int) -> int:
    """Return the number of worker processes: `--jobs`, else the most that cores and memory allow.

    Raises:
        InputError: `--jobs` is not positive.
    """
    if jobs is not None:
        return at_least_one("--jobs", jobs)
    return max(1, workers_within(videos * threads, _WORKER_BYTES) // threads)


def add_video_flags(parser: argparse.ArgumentParser, recipe: str) -> None:
    """Add the flags that name the videos of a shard and the recipe of their features."""
    parser.add_argument("--shard", type=Path, required=True, help="table of probed videos")
    parser.add_argument("--videos", type=Path, nargs="*", default=[], metavar="FILE", help=_PLACES)
    parser.add_argument("--recipe", type=Path, help=f"features/recipe.json: {recipe}")
    add_zones(parser)


def add_zones(parser: argparse._ActionsContainer) -> None:
    """Add the option of commands that look at videos."""
    text = "zones.json of `actionspan review`: only what happens inside its zones counts"
    parser.add_argument("--zones", type=Path, metavar="FILE", help=text)


def shard_work(arguments: argparse.Namespace) -> ShardWork:
    """Return the values of the flags of `add_shard_flags`.

    Raises:
        InputError: A value is not allowed.
    """
    counts = {
        name: at_least_one(f"--{name}", getattr(arguments, name))
        for name in ("processes", "threads")
        if hasattr(arguments, name)
    }
    return ShardWork(faults=from_arguments(FaultSettings, arguments), **counts)
