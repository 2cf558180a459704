"""Fit the time models to a table of run times, without the workflow."""

import argparse
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.scaling import timing_model as models
from actionspan.scaling.times import EXCHANGES, PARTS, SINGLE, Run, read_times
from actionspan.scaling.timing_model import PARAMETERS, Estimate, Fit, is_server, least_squares


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
        InputError: The file is not such a table, or has no run on several ranks.
    """
    runs = read_times(path)
    if all(run.exchange == SINGLE for run in runs):
        needed = f"runs of at least one of {', '.join(EXCHANGES)} are needed"
        raise InputError(f"{path}: only single-rank runs (exchange none); {needed}")
    return fit_times(runs)


def _lines(exchange: str, entry: dict[str, Any]) -> str:
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
    for name in dict.fromkeys([*PARAMETERS, *entry["identifiable"]]):
        value = entry["identifiable"].get(name)
        shown = "not determined" if value is None else f"{value:14,.4f} s"
        if entry["intervals"][name] is not None:
            low, high = entry["intervals"][name]
            shown += f"   {entry['confidence']:.0%} interval {low:,.4f} to {high:,.4f}"
        lines.append(f"  {name:<8}{shown}")
    paper = entry["paper_fit"]
    fit = ", ".join(f"{name} = {paper[name]:,.4f}" for name in PARAMETERS)
    fit = f"papers' three-parameter fit: {fit} (rank {paper['rank']})"
    lines += _wrapped(f"{fit}. {paper['note']}")
    for other, until in entry["crossover"].items():
        if until is not None:
            beyond = "" if until <= max(entry["ranks"]) else ", beyond the measured ranks"
            lines.append(f"  By these fits faster than {other} up to {until:,} ranks{beyond}.")
    return "\n".join([*lines, *_wrapped(entry["note"])])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 88, initial_indent="  ", subsequent_indent="  ")


def fit_times(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Fit the time models of all exchanges in a table of runs.

    Args:
        runs: In any order; runs of exchange `none` are the single-rank reference.

    Returns:
        What `timing_model.json` holds, by exchange; all times in seconds.

    Raises:
        ValueError: An exchange has no runs.
    """
    single = [run for run in runs if run.exchange == SINGLE]
    fits = models.fit_runs(runs)
    curves = {name: fit.curve.values.tolist() for name, fit in fits.items() if fit.curve}
    compared = models.crossovers(curves)
    alone: dict[str, Any] = {"crossover": {}, "faster_than": {}}
    return {
        exchange: {
            **_entry(exchange, fit, single),
            **compared.get(exchange, alone),
            "note": " ".join(_notes(exchange, fit)),
        }
        for exchange, fit in fits.items()
    }


def _entry(exchange: str, fit: Fit, single: Sequence[Run]) -> dict[str, Any]:
    """Return one exchange's part, without comparisons and notes."""
    values: dict[str, float] = {}
    intervals: dict[str, list[float] | None] = dict.fromkeys(PARAMETERS)
    for name, (estimate, weights) in _determined(exchange, fit).items():
        values[name] = float(np.array(weights) @ estimate.values)
        interval = estimate.interval(weights)
        intervals[name] = interval and list(interval)
    ranks, seconds = models.ranks_and_seconds(fit.runs)
    columns = models.model_columns(exchange, ranks)
    curve = fit.curve and {  # enough to draw it and its confidence band
        "terms": list(models.CURVE_TERMS),
        "coefficients": fit.curve.values.tolist(),
        "errors": [
            {"covariance": error.covariance.tolist(), "degrees": error.degrees}
            for error in fit.curve.errors
        ],
    }
    return {
        **{name: values.get(name) for name in PARAMETERS},
        "rank": fit.squares.rank,
        "r2": fit.r2,
        "measured": measured_parts(fit.runs),
        "paper_fit": paper_fit(columns, seconds, is_ring=not is_server(exchange)),
        "model": "T/n + C*n + P" if is_server(exchange) else "T/n + C*(n-1)/n + P",
        "fitted": list(fit.fitted),
        "condition": fit.squares.condition,
        "singular_values": fit.squares.singular_values.tolist(),
        "confidence": models.CONFIDENCE,
        "intervals": intervals,
        "identifiable": values,
        "curve": curve,
        "single_rank": _single_rank(single),
        "rows": len(fit.runs),
        "single_rank_rows": fit.borrowed,
        "ranks": sorted({run.ranks for run in fit.runs}),
    }


def _determined(exchange: str, fit: Fit) -> dict[str, tuple[Estimate, list[float]]]:
    """Return the quantities that the runs determine, as weighted sums of estimates.

    These are the parameters, combinations of them or, where the runs are on too few numbers of
    ranks for a model, the mean time on each number. T is among them if it was measured.
    """
    determined: dict[str, tuple[Estimate, list[float]]] = {}
    if fit.curve is None:
        ranks, seconds = models.ranks_and_seconds(fit.runs)
        numbers = sorted(set(ranks.tolist()))
        means = least_squares((ranks[:, None] == numbers).astype(np.float64), seconds).estimate
        assert means is not None
        for number, weights in zip(numbers, np.eye(len(numbers)).tolist(), strict=True):
            determined[f"t({number:.0f})"] = means, weights
    else:
        if fit.parameters is not None:
            for name, weights in zip(PARAMETERS, np.eye(3).tolist(), strict=True):
                determined[name] = fit.parameters, weights
        if not is_server(exchange):
            determined["T - C"] = fit.curve, [1.0, 0.0, 0.0]
            determined["C + P"] = fit.curve, [0.0, 0.0, 1.0]
    if fit.measured is not None:
        determined.setdefault("T", (fit.measured, [1.0]))
    return determined


def measured_parts(runs: Sequence[Run]) -> dict[str, dict[str, float] | None]:
    """Return the mean t1, t2 and t3 by number of ranks; None for a part without measurements."""
    parts: dict[str, dict[str, float] | None] = {}
    for name in PARTS:
        times: dict[int, list[float]] = {}
        for run in runs:
            if (value := getattr(run, name)) is not None:
                times.setdefault(run.ranks, []).append(value)
        parts[name] = {str(n): float(np.mean(times[n])) for n in sorted(times)} or None
    return parts


def _single_rank(single: Sequence[Run]) -> dict[str, Any] | None:
    if not single:
        return None
    seconds = float(np.mean([run.seconds for run in single]))
    parts = {name: means and means["1"] for name, means in measured_parts(single).items()}
    return {"runs": len(single), "seconds": seconds, **parts}


def _notes(exchange: str, fit: Fit) -> list[str]:
    notes = []
    numbers = sorted({run.ranks for run in fit.runs})
    if fit.measured is not None:
        counted = f"{fit.times_measured} single-rank run{'s' * (fit.times_measured != 1)}"
        notes.append(
            f"T is the measured compute time t1 of {counted}; C and P are fitted to the rest."
        )
    if fit.curve is None:
        needed = 3 if is_server(exchange) and fit.measured is None else 2
        notes.append(
            f"Not determined: {' and '.join(fit.fitted)}. The runs are on {len(numbers)} different "
            f"number{'s' if len(numbers) > 1 else ''} of ranks ({', '.join(map(str, numbers))}); "
            f"at least {needed} are needed."
        )
    elif fit.parameters is None:
        notes.append(
            "T, C and P are not determined separately: T/n + C*(n-1)/n + P equals "
            "(T - C)/n + (C + P), so run times show only T - C and C + P. With the compute time "
            "t1 of single-rank runs (exchange none) in the table, T is known and C and P follow."
        )
    if fit.borrowed and fit.parameters is not None:
        notes.append(
            f"All runs are on {numbers[0]} ranks, so P was taken from the single-rank runs too: "
            "their run times less t1."
        )
    if fit.times_measured == 1:
        notes.append(
            "T was measured once, so its error and the intervals it enters are not known; "
            "repeat the single-rank run."
        )
    if fit.curve is not None and not fit.squares.degrees:
        notes.append("The runs do not outnumber the fitted values, which thus have no intervals.")
    condition = fit.squares.condition
    if condition is not None and condition > 1e4:
        notes.append(
            f"The condition number is {condition:.1e}: the numbers of ranks lie so close together "
            "that small errors of the run times become large ones of the fitted values."
        )
    if fit.parameters is not None and fit.parameters.values[1] < 0:
        notes.append(
            "C is below zero, as no communication can be: it is lost in the noise of the run "
            "times, or they do not follow this model."
        )
    return notes


def paper_fit(columns: Float64, seconds: Float64, *, is_ring: bool) -> dict[str, Any]:
    """Fit all three parameters to the seconds (m,) of runs, as paper 000 does in its section IV.

    Columns (m, 3) are what T, C and P are multiplied with. Where many sets fit equally well, as
    always for the ring, it returns the set of least norm, so that the result depends only on the
    runs; a search would end elsewhere from each start.
    """
    fit = least_squares(columns, seconds)
    alternative, note = None, "The only best fit."
    if fit.estimate is None:
        note = (
            "One of infinitely many equally good fits, the one of least norm: the runs are on too "
            "few different numbers of ranks."
        )
    if fit.rank == 2:
        # the set without communication fits as well
        slope, level = least_squares(columns[:, [0, 2]], seconds).coefficients.tolist()
        alternative = {"T": slope, "C": 0.0, "P": level}
        if is_ring:
            note = (
                f"One of infinitely many equally good fits, the one of least norm: any C with "
                f"T = {slope:.6g} + C and P = {level:.6g} - C gives the same times."
            )
    return {
        **dict(zip(PARAMETERS, fit.coefficients.tolist(), strict=True)),
        "rank": fit.rank,
        "condition": fit.condition,
        "r2": models.explained(seconds, columns @ fit.coefficients),
        "alternative": alternative,
        "note": note,
    }
