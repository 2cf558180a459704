"""What our timed runs say about paper 000's claims, with Welch's intervals over their repeats."""

from collections.abc import Mapping, Sequence

import numpy as np

from actionspan.arrays import Float64
from actionspan.scaling.least_squares import CONFIDENCE, least_squares
from actionspan.scaling.table import Run
from actionspan.scaling.timing_model import model_columns, ranks_and_seconds
from actionspan_papers.estimates import Estimate, alike, over_seeds

_MARGIN = 10.0
"""Percent by which n·t1 may change with n and count as constant."""

Logarithms = dict[tuple[str, int], Float64]
"""By exchange and ranks, 100·log of the seconds of each repeat: differences are percents."""


def measured_evidence(runs: Sequence[Run]) -> dict[str, Estimate | str]:
    """Return the evidence on each claim about our runs, in percent; of C, in seconds."""
    whole, sent = (_logarithms(runs, part) for part in ("seconds", "t2"))
    work = {key: own + 100 * np.log(key[1]) for key, own in _logarithms(runs, "t1").items()}
    both = sorted(n for name, n in whole if name == "ring" and n > 1 and ("ps", n) in whole)
    most, fewest = max(both, default=0), min(both[:-1], default=0)
    lead = {("ps", most): 1, ("ring", most): -1}
    return {
        "our_seconds": _sum(whole, lead),
        "our_lead": _sum(whole, {**lead, ("ps", fewest): -1, ("ring", fewest): 1}),
        "our_t2": _sum(sent, lead),
        "our_t1": alike(_MARGIN, _sum(work, {("ring", most): 1, ("none", 1): -1})),
        "our_negative": _negative([run for run in runs if run.exchange == "ring"]),
    }


def _logarithms(runs: Sequence[Run], part: str) -> Logarithms:
    """Return those of the runs whose seconds of a part are known and not 0."""
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        if value := getattr(run, part):
            found.setdefault((run.exchange, run.ranks), []).append(value)
    return {key: 100 * np.log(values) for key, values in found.items()}


def _sum(logarithms: Logarithms, signs: Mapping[tuple[str, int], int]) -> Estimate | str:
    """Return the sum of means with these signs, or why it has no interval."""
    if not signs.keys() <= logarithms.keys():
        return "There are no such runs, or their parts were not timed."
    groups = [sign * logarithms[key] for key, sign in signs.items()]
    if min(map(len, groups)) < 2:
        return "One run of each says nothing about the next."
    return over_seeds(groups, CONFIDENCE, float(sum(group.mean() for group in groups)))


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
