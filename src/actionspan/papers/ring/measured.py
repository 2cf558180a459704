"""What our timed runs say about paper 000's claims, with Welch's intervals over their repeats."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from actionspan.arrays import Float64
from actionspan.papers.estimates import Estimate, alike, over_seeds
from actionspan.scaling.least_squares import CONFIDENCE, least_squares
from actionspan.scaling.table import SINGLE, Run
from actionspan.scaling.timing_model import model_columns, ranks_and_seconds

_MARGIN = 10.0
"""Percent by which n·t1 may change with n and count as constant."""


def measured_evidence(runs: Sequence[Run]) -> dict[str, Estimate | str]:
    """Return the evidence on each claim about our runs, in percent; of C, in seconds.

    Percents are 100 times differences of logarithms.
    """
    ring, server = (_logarithms(runs, (name,), "seconds") for name in ("ring", "ps"))
    common = sorted((ring.keys() & server.keys()) - {1})
    most, fewest = max(common, default=0), min(common[:-1], default=0)
    sent = [_logarithms(runs, (name,), "t2").get(most) for name in ("ps", "ring")]
    t1 = {n: own + 100 * np.log(n) for n, own in _logarithms(runs, ("ring", SINGLE), "t1").items()}
    own = [run for run in runs if run.exchange == "ring"]
    last, first = [server.get(most), ring.get(most)], [server.get(fewest), ring.get(fewest)]
    return {
        "our_seconds": _difference(last[:1], last[1:]),
        "our_lead": _difference([last[0], first[1]], [last[1], first[0]]),
        "our_t2": _difference(sent[:1], sent[1:]),
        "our_t1": alike(
            _MARGIN, _difference([t1.get(max(t1, default=0))], [t1.get(min([*t1][:-1], default=0))])
        ),
        "our_negative": _negative(own),
    }


def _logarithms(runs: Sequence[Run], exchanges: Sequence[str], part: str) -> dict[int, Float64]:
    """Return 100·log of the seconds of a part, by number of ranks, rising."""
    value = attrgetter(part)
    chosen = [run for run in runs if run.exchange in exchanges and value(run)]
    return {
        ranks: 100 * np.log([value(run) for run in chosen if run.ranks == ranks])
        for ranks in sorted({run.ranks for run in chosen})
    }


def _difference(more: Sequence[Float64 | None], less: Sequence[Float64 | None]) -> Estimate | str:
    """Return the means of `more` less those of `less`, or why there is no interval."""
    groups = [group for group in (*more, *less) if group is not None]
    if len(groups) < len(more) + len(less):
        return "There are no such runs, or their parts were not timed."
    if min(map(len, groups)) < 2:
        return "One run of each says nothing about the next."
    plus, minus = (
        sum(float(each.mean()) for each in side if each is not None) for side in (more, less)
    )
    return over_seeds(groups, CONFIDENCE, plus - minus)


def _negative(runs: Sequence[Run]) -> Estimate | str:
    """Return -C of equation 1 fitted to the ring's runs."""
    if not runs:
        return "There are no runs of ring."
    ranks, seconds = ranks_and_seconds(runs)
    fit = least_squares(model_columns("ps", ranks), seconds)
    found = fit.estimate.interval([0, -1, 0]) if fit.determined and fit.degrees else None
    if found is None:
        return "Runs on three numbers of ranks, and one more, are needed to fit equation 1."
    return Estimate(value=-float(fit.coefficients[1]), low=found[0], high=found[1])
