"""Write a verdict on each claim of paper 000: by its fits, by counting, and by our timed runs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from actionspan.arrays import Float64
from actionspan.scaling import timing_model
from actionspan.scaling.times import Run
from actionspan_papers import claims
from actionspan_papers.claims import claims_experiment
from actionspan_papers.estimates import Estimate, alike, over_seeds
from actionspan_papers.evidence import on_gpu, read_measurements
from actionspan_papers.experiments import read_frame
from actionspan_papers.kinds import Flags
from actionspan_papers.ring import fits
from actionspan_papers.ring.published import GPUS, printed_findings

_MARGIN = 10.0
"""Percent by which a part, over its law in n, may change with n and count as constant."""
_EXPLAINED = 0.95
"""R² from which a fit explains the times."""

_TOO_FEW = "Runs on {} numbers of ranks above 1 are needed, each repeated: scaling.ranks: [{}]."

_Logarithms = dict[tuple[str, int], Float64]
"""By exchange and ranks, 100·log of the seconds of each repeat: differences are percents."""


def judge_claims(runs: Sequence[Run], links: Sequence[Run] = ()) -> list[claims.Finding]:
    """Return a finding for each claim, on our runs where it is about them.

    Links are all-reduces over emulated ones: their seconds are t2.
    """
    ours = {**_measured_evidence(runs), **_metric_evidence(runs), **_link_evidence(links)}
    return printed_findings() + claims.measured("ring", ours)


def _measured_evidence(runs: Sequence[Run]) -> dict[str, Estimate | float | str]:
    """Return the evidence on each claim about our runs, in percent; of C, in seconds."""
    whole, sent = (_logarithms(runs, part) for part in ("seconds", "t2"))
    work = {key: own + 100 * np.log(key[1]) for key, own in _logarithms(runs, "t1").items()}
    both = sorted(n for name, n in whole if name == "ring" and n > 1 and ("ps", n) in whole)
    most, fewest = max(both, default=0), min(both[:-1], default=0)
    lead = {("ps", most): 1, ("ring", most): -1}
    more = _sum(whole, {**lead, ("ps", fewest): -1, ("ring", fewest): 1})
    return {
        "our_seconds": _sum(whole, lead),
        "our_lead": _TOO_FEW.format("two", "1, 2, 4") if len(both) == 1 else more,
        "our_t2": _sum(sent, lead),
        "our_t1": alike(_MARGIN, _sum(work, {("ring", most): 1, ("none", 1): -1})),
        "our_negative": _negative([run for run in runs if run.exchange == "ring"]),
    }


_Law = Callable[[float], float]
_LAWS: Mapping[str, _Law] = {"ps": lambda n: n, "ring": lambda n: (n - 1) / n}
"""What t2 is proportional to, section III-E."""


def _metric_evidence(runs: Sequence[Run]) -> dict[str, Estimate | float | str]:
    """Return how far the parts of a run's time are from the metric's laws in n, and R²."""
    evidence: dict[str, Estimate | float | str] = {}
    for name, law in _LAWS.items():
        own = [run for run in runs if run.exchange == name and run.ranks > 1]
        evidence[f"our_t1_{name}"] = _constant(own, "t1", lambda n: 1 / n)
        evidence[f"our_t2_{name}"] = _constant(own, "t2", law)
        evidence[f"our_t3_{name}"] = _constant(own, "t3", lambda n: 1)
        evidence[f"our_r2_{name}"] = _r2(own, name)
    del evidence["our_t1_ring"]  # judged by the run of one rank too
    return evidence


def _constant(runs: Sequence[Run], part: str, law: _Law) -> Estimate | str:
    """Return the margin less the change of part ÷ law from the fewest to the most ranks."""
    over = {key: own - 100 * np.log(law(key[1])) for key, own in _logarithms(runs, part).items()}
    ranks = sorted(over, key=lambda key: key[1])
    if len(ranks) == 1:
        return _TOO_FEW.format("two", "1, 2, 4, 8")
    return alike(_MARGIN, _sum(over, {ranks[-1]: 1, ranks[0]: -1} if ranks else {("", 0): 1}))


def _r2(runs: Sequence[Run], name: str) -> float | str:
    """Return R² of the equation less what explains; a fit through all numbers of ranks is none."""
    if not runs:
        return f"Runs of {name} are missing."
    ranks, seconds = timing_model.ranks_and_seconds(runs)
    columns = timing_model.model_columns(name, ranks)
    fit = timing_model.least_squares(columns, seconds)
    if len(set(ranks)) <= fit.rank:
        return _TOO_FEW.format("four", "1, 2, 3, 4, 8")
    r2 = timing_model.explained(seconds, columns @ fit.coefficients)
    return "The times do not differ." if r2 is None else r2 - _EXPLAINED


def _link_evidence(links: Sequence[Run]) -> dict[str, Estimate | float | str]:
    """Return the verdicts on t2 by all-reduces over emulated links: medians alone."""
    seconds = {(run.exchange, run.ranks): run.seconds for run in links}
    evidence: dict[str, Estimate | float | str] = {}
    most = {name: max((n for each, n in seconds if each == name), default=0) for name in _LAWS}
    for name, law in _LAWS.items():
        ranks = sorted(n for each, n in seconds if each == name and n > 1)
        missing = "Such runs are missing in --links."
        if len(ranks) > 1:
            few, many = (seconds[name, n] / law(n) for n in (ranks[0], ranks[-1]))
            evidence[f"links_{name}"] = _MARGIN - abs(100 * math.log(many / few))
        else:
            evidence[f"links_{name}"] = missing
    both = min(most.values())
    known = all((name, both) in seconds for name in _LAWS)
    ratio = 100 * math.log(seconds["ps", both] / seconds["ring", both]) if known else missing
    return {**evidence, "links_t2": ratio}


def _logarithms(runs: Sequence[Run], part: str) -> _Logarithms:
    """Return the runs with seconds of a part that are known and not 0."""
    seconds: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        if value := getattr(run, part):
            seconds.setdefault((run.exchange, run.ranks), []).append(value)
    return {key: 100 * np.log(values) for key, values in seconds.items()}


def _sum(logarithms: _Logarithms, signs: Mapping[tuple[str, int], int]) -> Estimate | str:
    """Return the sum of means with these signs, or why it has no interval."""
    if not signs.keys() <= logarithms.keys():
        return "Such runs are missing, or their parts were not timed."
    groups = [sign * logarithms[key] for key, sign in signs.items()]
    if min(map(len, groups)) < 2:
        return "One run of each shows nothing about the next."
    value = float(sum(group.mean() for group in groups))
    return replace(over_seeds(groups, timing_model.CONFIDENCE, value), unit="repeats")


def _negative(runs: Sequence[Run]) -> Estimate | str:
    """Return -C of equation 1 fitted to the ring's runs."""
    if not runs:
        return "Runs of ring are missing."
    ranks, seconds = timing_model.ranks_and_seconds(runs)
    fit = timing_model.least_squares(timing_model.model_columns("ps", ranks), seconds)
    ends = fit.estimate.interval([0, -1, 0]) if fit.estimate and fit.degrees else None
    if ends is None:
        return _TOO_FEW.format("three", "1, 2, 3, 4")
    return Estimate(value=-float(fit.coefficients[1]), low=ends[0], high=ends[1])


def _judged(arguments: Flags) -> claims.Judged:
    caption = [
        "A difference above 0 speaks for the claim. Our runs have the 95 % interval over their "
        f"repeats (Welch). All else is exact: it follows from the printed fits, on {GPUS} GPUs "
        "where none are named, or from counting. No table of the paper has its times, so its fits "
        "replace them. The gain is of the ring's lead in speed ratio from one GPU more; K "
        "is the size of the gradient. Times on a GPU and on emulated links are medians "
        f"({arguments.links.name}; the included one: 2 to 8 hosts on 2 cores, 2026-11-28)."
    ]
    findings = judge_claims(fits.runs_of(arguments), _read_links(arguments.links))
    return [*findings, *on_gpu("ring", read_measurements())], caption


def _read_links(path: Path) -> list[Run]:
    """Return the largest all-reduces of a table of benchmarks/network/run.py."""
    rows = read_frame(path, ("algorithm", "ranks", "bytes", "seconds_median"))
    rows = rows[(rows["bytes"] == rows["bytes"].max()) & rows["algorithm"].isin(list(_LAWS))]
    cells = zip(rows["algorithm"], rows["ranks"], rows["seconds_median"], strict=True)
    return [Run(exchange=name, ranks=int(n), seconds=float(each)) for name, n, each in cells]


_LINKS = {
    "type": Path,
    "default": Path(__file__).with_name("network.tsv"),
    "help": "table of benchmarks/network/run.py, as root on your machine",
}
EXPERIMENT = claims_experiment("000", _judged, inputs={**fits.TIMES, "links": _LINKS})
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
