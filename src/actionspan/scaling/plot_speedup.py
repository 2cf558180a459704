"""Draw the speed ratio of each exchange over ranks."""

import argparse
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from statistics import median

from actionspan.errors import InputError
from actionspan.scaling.times import EXCHANGES, SINGLE, Ratios, Run, read_times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--times", type=Path, required=True, help="times.tsv")
    parser.add_argument("--out", type=Path, required=True, help=".svg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Draw the figure."""
    from actionspan.scaling.figures import draw_speedup

    draw_speedup(arguments.out, speed_panels(arguments.times, read_times(arguments.times)))


def speed_ratios(
    path: Path, runs: Sequence[Run], part: Callable[[Run], float] = attrgetter("seconds")
) -> Ratios:
    """Return t0/t of all runs of the table `path`; t0 is the median of the single-rank runs.

    `part` gives the seconds of a run that are compared.

    Raises:
        InputError: The single-rank run is missing, or all others.
    """
    alone = [part(run) for run in runs if run.exchange == SINGLE]
    if not alone:
        line = f"no row of exchange {SINGLE!r} on 1 rank; the others are compared with it"
        raise InputError(f"{path}: {line}")
    reference = median(alone)
    ratios: dict[str, dict[int, list[float]]] = {}
    for exchange in (SINGLE, *EXCHANGES):
        for run in sorted(runs, key=lambda run: run.ranks):
            if run.exchange == exchange:
                at = ratios.setdefault(exchange, {}).setdefault(run.ranks, [])
                at.append(reference / part(run))
    if len(ratios) == 1:
        raise InputError(f"{path}: only single-rank runs; runs on several ranks are needed")
    return ratios


def speed_panels(path: Path, runs: Sequence[Run]) -> dict[str, Ratios]:
    """Return the ratios of complete runs and, where these were measured, of their steps alone.

    The steps are the part that grows with the length of training: computing and communication.
    Arguments and errors are as in `speed_ratios`.
    """

    def steps(run: Run) -> float:
        return (run.t1 or 0.0) + (run.t2 or 0.0)

    panels = {"whole run": speed_ratios(path, runs)}
    if all(run.t1 and run.t2 is not None for run in runs):
        panels["steps alone (t1 + t2)"] = speed_ratios(path, runs, steps)
    return panels
