"""Run times made from known parameters, for the tests of this folder."""

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
        Run(
            exchange="none",
            ranks=1,
            seconds=compute + e + constant,
            t1=compute + e,
            t2=0.0,
            t3=constant,
        )
        for e in errors
    ]


def noisy_runs(rng, exchange, parameters, *, ranks, repeats, deviation, single=0):
    """Runs with normal errors; `single` of them on one rank, with t1."""
    compute, _, constant = parameters
    runs = [
        Run(
            exchange=exchange,
            ranks=n,
            seconds=model_seconds(exchange, parameters, n) + rng.normal(0, deviation),
        )
        for n in ranks
        for _ in range(repeats)
    ]
    for error in rng.normal(0, deviation, single):
        start = constant + rng.normal(0, deviation)
        runs.append(
            Run(exchange="none", ranks=1, seconds=compute + error + start, t1=compute + error)
        )
    return runs


def flat(value):
    """All numbers in nested lists and dictionaries, in one array."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        parts = [flat(inner) for inner in value]
        return np.concatenate(parts) if parts else np.empty(0)
    return np.array([value] if isinstance(value, int | float) else [], dtype=np.float64)
