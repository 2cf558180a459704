"""Fitted time models as `timing_model.json` holds them, with notes for the reader."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from actionspan.scaling.crossover import crossovers
from actionspan.scaling.least_squares import CONFIDENCE, Estimate, Interval, least_squares
from actionspan.scaling.paper_fit import paper_fit
from actionspan.scaling.table import PARTS, SINGLE, Run
from actionspan.scaling.timing_model import (
    CURVE_TERMS,
    PARAMETERS,
    Fit,
    fit_runs,
    is_server,
    model_columns,
    ranks_and_seconds,
)

_BADLY_CONDITIONED = 1e4

Determined = dict[str, tuple[float, Interval | None]]


def fit_times(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Fit the time models of all exchanges in a table of runs.

    Args:
        runs: In any order; those of exchange `none` are the single-rank reference.

    Returns:
        What `timing_model.json` holds, by exchange; all times in seconds.

    Raises:
        ValueError: There is no run of an exchange.
    """
    single = [run for run in runs if run.exchange == SINGLE]
    fits = fit_runs(runs)
    curves = {name: fit.curve.values.tolist() for name, fit in fits.items() if fit.curve}
    compared = crossovers(curves)
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
    determined = _determined(exchange, fit)
    if fit.measured is not None:
        determined.setdefault("T", _value(fit.measured, [1.0]))
    values = {name: value for name, (value, _) in determined.items()}
    ranks, seconds = ranks_and_seconds(fit.runs)
    columns = model_columns(exchange, ranks)
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
        "confidence": CONFIDENCE,
        "intervals": {
            **dict.fromkeys(PARAMETERS),
            **{name: interval and list(interval) for name, (_, interval) in determined.items()},
        },
        "identifiable": values,
        "curve": fit.curve  # enough to draw it and its confidence band
        and {
            "terms": list(CURVE_TERMS),
            "coefficients": fit.curve.values.tolist(),
            "errors": [
                {"covariance": error.covariance.tolist(), "degrees": error.degrees}
                for error in fit.curve.errors
            ],
        },
        "single_rank": _single_rank(single),
        "rows": len(fit.runs),
        "single_rank_rows": fit.borrowed,
        "ranks": sorted({run.ranks for run in fit.runs}),
    }


def _determined(exchange: str, fit: Fit) -> Determined:
    """Return what the runs determine: the parameters, combinations of them, or only times."""
    if fit.curve is None:
        return _time_at_each_number(fit.runs)
    determined: Determined = {}
    if fit.parameters is not None:
        for name, weights in zip(PARAMETERS, np.eye(3).tolist(), strict=True):
            determined[name] = _value(fit.parameters, weights)
    if not is_server(exchange):
        determined["T - C"] = _value(fit.curve, [1.0, 0.0, 0.0])
        determined["C + P"] = _value(fit.curve, [0.0, 0.0, 1.0])
    return determined


def _time_at_each_number(runs: Sequence[Run]) -> Determined:
    """Return the mean time on each number of ranks, where these are too few for a model."""
    ranks, seconds = ranks_and_seconds(runs)
    numbers = sorted(set(ranks.tolist()))
    means = least_squares((ranks[:, None] == numbers).astype(np.float64), seconds).estimate
    return {
        f"t({number:.0f})": _value(means, weights)
        for number, weights in zip(numbers, np.eye(len(numbers)).tolist(), strict=True)
    }


def _value(estimate: Estimate, weights: Sequence[float]) -> tuple[float, Interval | None]:
    return estimate.value(weights), estimate.interval(weights)


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
    """Return the means of the single-rank runs."""
    if not single:
        return None
    seconds = float(np.mean([run.seconds for run in single]))
    parts = {name: means and means["1"] for name, means in measured_parts(single).items()}
    return {"runs": len(single), "seconds": seconds, **parts}


def _notes(exchange: str, fit: Fit) -> list[str]:
    """Return notes on the numbers, a sentence or two each."""
    notes = []
    numbers = sorted({run.ranks for run in fit.runs})
    if fit.measured is not None:
        plural = "" if fit.times_measured == 1 else "s"
        notes.append(
            f"T is the measured compute time t1 of {fit.times_measured} single-rank run{plural}; "
            "C and P are fitted to the rest."
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
        notes.append("There are no more runs than fitted values, hence no intervals of those.")
    condition = fit.squares.condition
    if condition is not None and condition > _BADLY_CONDITIONED:
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
