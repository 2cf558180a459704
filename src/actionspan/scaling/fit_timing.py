"""Fit the time models to a table of run times, without the workflow."""

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.scaling.record import fit_times
from actionspan.scaling.table import EXCHANGES, SINGLE, read_times

_WIDTH = 88


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "times",
        type=Path,
        metavar="TIMES.tsv",
        help="table with the columns exchange, ranks, seconds (of a complete run) and perhaps t1 "
        "(compute), t2 (communication), t3 (start and finish), in seconds; exchange none on 1 "
        "rank is the single-rank reference",
    )
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")


def run(arguments: argparse.Namespace) -> None:
    """Print the fitted models."""
    model = fit_file(arguments.times)
    text = "\n\n".join(_lines(exchange, entry) for exchange, entry in model.items())
    print(json.dumps(model) if arguments.json else text)


def fit_file(path: Path) -> dict[str, dict[str, Any]]:
    """Fit the time models of a table in a file.

    Raises:
        InputError: The file is no such table, or has no run on several ranks.
    """
    runs = read_times(path)
    if all(run.exchange == SINGLE for run in runs):
        raise InputError(
            f"{path}: only single-rank runs (exchange none); runs of at least one of "
            f"{', '.join(EXCHANGES)} are needed"
        )
    return fit_times(runs)


def _lines(exchange: str, entry: dict[str, Any]) -> str:
    """Return the fitted model of one exchange as a few lines to read."""
    fitted, condition, r2 = entry["fitted"], entry["condition"], entry["r2"]
    borrowed = entry["single_rank_rows"]
    also = f" and {borrowed} on one" if borrowed else ""
    lines = [
        f"{exchange}: t = {entry['model']}",
        f"  {entry['rows']} runs on {', '.join(map(str, entry['ranks']))} ranks{also}; "
        f"fitted: {', '.join(fitted)}; rank {entry['rank']} of {len(fitted)}, "
        f"condition number {'infinite' if condition is None else f'{condition:.3g}'}, "
        f"r2 {'-' if r2 is None else f'{r2:.6f}'}",
    ]
    values = {**{name: entry[name] for name in ("T", "C", "P")}, **entry["identifiable"]}
    for name, value in values.items():
        shown = "not determined" if value is None else f"{value:14,.4f} s"
        if entry["intervals"][name] is not None:
            low, high = entry["intervals"][name]
            shown += f"   {entry['confidence']:.0%} interval {low:,.4f} to {high:,.4f}"
        lines.append(f"  {name:<8}{shown}")
    paper = entry["paper_fit"]
    fit = ", ".join(f"{name} = {paper[name]:,.4f}" for name in ("T", "C", "P"))
    lines += _wrapped(f"papers' three-parameter fit: {fit} (rank {paper['rank']}). ", paper)
    for other, until in entry["crossover"].items():
        if until is not None:
            beyond = "" if until <= max(entry["ranks"]) else ", beyond what was run"
            lines.append(f"  By these fits faster than {other} up to {until:,} ranks{beyond}.")
    return "\n".join([*lines, *_wrapped("", entry)])


def _wrapped(beginning: str, entry: dict[str, Any]) -> list[str]:
    text = beginning + entry["note"]
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
