"""Fitted time models as `timing_model.json` holds them, with what a reader has to know."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from actionspan.scaling.crossover import Curve, crossovers
from actionspan.scaling.least_squares import (
    CONFIDENCE,
    Estimate,
    Interval,
    least_squares,
    residual_error,
)
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

SERVER_MODEL = "T/n + C*n + P"
RING_MODEL = "T/n + C*(n-1)/n + P"
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
    curves: dict[str, Curve] = {}
    for exchange, fit in fits.items():
        if fit.curve is not None:
            inverse, slope, level = fit.curve.values.tolist()
            curves[exchange] = (inverse, slope, level)
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
    values = {name: value for name, (value, _) in determined.items()}
    if fit.measured is not None:
        values.setdefault("T", fit.measured.of([1]))
        determined.setdefault("T", (values["T"], fit.measured.interval([1])))
    ranks, seconds = ranks_and_seconds(fit.runs)
    columns = model_columns(exchange, ranks)
    return {
        **{name: values.get(name) for name in PARAMETERS},
        "rank": fit.squares.rank,
        "r2": fit.r2,
        "measured": measured_parts(fit.runs),
        "paper_fit": paper_fit(columns, seconds, is_ring=not is_server(exchange)),
        "model": SERVER_MODEL if is_server(exchange) else RING_MODEL,
        "fitted": list(fit.fitted),
        "condition": fit.squares.condition,
        "singular_values": fit.squares.singular_values.tolist(),
        "confidence": CONFIDENCE,
        "intervals": {
            **dict.fromkeys(PARAMETERS),
            **{name: interval and list(interval) for name, (_, interval) in determined.items()},
        },
        "identifiable": values,
        "curve": None if fit.curve is None else _curve_record(fit.curve),
        "single_rank": _single_rank(single),
        "rows": len(fit.runs),
        "single_rank_rows": fit.borrowed,
        "ranks": sorted({run.ranks for run in fit.runs}),
    }


def _determined(exchange: str, fit: Fit) -> Determined:
    """Return what the runs determine: the parameters, combinations of them, or mere times."""
    if fit.curve is None:
        return _time_at_each_number(fit.runs)
    found: Determined = {}
    if fit.parameters is not None:
        for name, weights in zip(PARAMETERS, np.eye(3).tolist(), strict=True):
            found[name] = _value(fit.parameters, weights)
    if not is_server(exchange):
        found["T - C"] = _value(fit.curve, [1.0, 0.0, 0.0])
        found["C + P"] = _value(fit.curve, [0.0, 0.0, 1.0])
    return found


def _time_at_each_number(runs: Sequence[Run]) -> Determined:
    """Return the mean time on each number of ranks: all that too few numbers determine."""
    ranks, seconds = ranks_and_seconds(runs)
    numbers = sorted(set(ranks.tolist()))
    means = least_squares((ranks[:, None] == numbers).astype(np.float64), seconds)
    estimate = Estimate(means.coefficients, (residual_error(means),))
    return {
        f"t({number:.0f})": _value(estimate, weights)
        for number, weights in zip(numbers, np.eye(len(numbers)).tolist(), strict=True)
    }


def _value(estimate: Estimate, weights: Sequence[float]) -> tuple[float, Interval | None]:
    return estimate.of(weights), estimate.interval(weights)


def _curve_record(curve: Estimate) -> dict[str, Any]:
    """Return a fitted curve: enough to draw it and its confidence band."""
    return {
        "terms": list(CURVE_TERMS),
        "coefficients": curve.values.tolist(),
        "errors": [
            {"covariance": error.covariance.tolist(), "degrees": error.degrees}
            for error in curve.errors
        ],
    }


def measured_parts(runs: Sequence[Run]) -> dict[str, dict[str, float] | None]:
    """Return the mean t1, t2 and t3 by number of ranks; None for a part without measurements."""
    parts: dict[str, dict[str, float] | None] = {}
    for name in PARTS:
        found: dict[int, list[float]] = {}
        for run in runs:
            if (value := getattr(run, name)) is not None:
                found.setdefault(run.ranks, []).append(value)
        parts[name] = {str(n): float(np.mean(found[n])) for n in sorted(found)} or None
    return parts


def _single_rank(single: Sequence[Run]) -> dict[str, Any] | None:
    """Return the means of the single-rank runs."""
    if not single:
        return None
    seconds = float(np.mean([run.seconds for run in single]))
    parts = {name: means and means["1"] for name, means in measured_parts(single).items()}
    return {"runs": len(single), "seconds": seconds, **parts}


def _notes(exchange: str, fit: Fit) -> list[str]:
    """Return what a reader of the numbers has to know, a sentence or two each."""
    notes = []
    numbers = sorted({run.ranks for run in fit.runs})
    if fit.measured is not None:
        runs = (
            "1 single-rank run"
            if fit.times_measured == 1
            else (f"{fit.times_measured} single-rank runs")
        )
        notes.append(
            f"T is the measured compute time t1 of {runs}; C and P are fitted to the rest."
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
            "from what is left of them without t1."
        )
    if fit.times_measured == 1:
        notes.append(
            "T was measured once, so its error is not known, nor any interval it enters; "
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
