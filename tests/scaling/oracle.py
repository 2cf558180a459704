"""Run times made from known parameters, for the tests of this folder."""

from dataclasses import replace

import numpy as np

from actionspan.scaling.times import SERVER_EXCHANGES, Run

# The papers' own fits, in seconds.
PAPER_PS = (4223.8, 12.1, 290.8)
PAPER_RING = (4400.1, 59.6, 363.5)


def model_seconds(exchange, parameters, ranks):
    compute, communication, constant = parameters
    amount = ranks if exchange in SERVER_EXCHANGES else (ranks - 1) / ranks
    return compute / ranks + communication * amount + constant


def runs_of(exchange, parameters, ranks=range(2, 9)):
    return [
        Run(exchange=exchange, ranks=n, seconds=model_seconds(exchange, parameters, n))
        for n in ranks
    ]


def single_runs(compute, constant, errors=(-2.0, 0.0, 2.0)):
    return [
        Run(exchange="none", ranks=1, seconds=t1 + constant, t1=t1, t2=0.0, t3=constant)
        for t1 in (compute + error for error in errors)
    ]


def noisy_runs(rng, exchange, parameters, *, ranks, repeats, deviation, single=0):
    """Runs with normal errors; `single` of them on one rank, with t1."""
    compute, _, constant = parameters
    runs = [
        replace(run, seconds=run.seconds + rng.normal(0, deviation))
        for run in runs_of(exchange, parameters, ranks)
        for _ in range(repeats)
    ]
    for error in rng.normal(0, deviation, single):
        t1, start = compute + error, constant + rng.normal(0, deviation)
        runs.append(Run(exchange="none", ranks=1, seconds=t1 + start, t1=t1))
    return runs


def flat(value):
    """All numbers in nested lists and dictionaries, in one array."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        parts = [flat(inner) for inner in value]
        return np.concatenate(parts) if parts else np.empty(0)
    return np.array([value] if isinstance(value, int | float) else [], dtype=np.float64)
