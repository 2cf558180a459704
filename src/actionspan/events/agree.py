"""How well two observers agree, or a model and an observer: kappa by time, matches by bout."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from actionspan.arrays import Float64, temporal_iou
from actionspan.dataset.settings import add_reading
from actionspan.errors import InputError, brief, counted
from actionspan.events.reading import Observed, need_durations, overlap, read_events

_LEAST = 0.5  # tIoU of two bouts that are the same


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement about a label, or about any (None), over all videos that both have looked at.

    `kappa` is Cohen's (1960), of the seconds in which the label applies for one and the other; None
    where chance alone makes both agree everywhere. The largest possible number of bouts is matched
    one to one, at a tIoU of 0.5 or more.
    """

    label: str | None
    kappa: float | None
    agreed: float  # share of the time
    first: int  # bouts of the first
    second: int
    matched: int
    tiou: float | None  # mean of the bouts that match


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    forms = "events.csv, corrections.csv, or annotations in any form"
    parser.add_argument("first", type=Path, metavar="A", help=forms)
    parser.add_argument("second", type=Path, metavar="B", help="the same videos by another")
    folder = "folder of the videos, for durations that A and B leave out"
    parser.add_argument("--videos", type=Path, metavar="FOLDER", help=folder)
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print a table, a line for each label."""
    paths = arguments.first, arguments.second
    pairs = paired(*(read_events(path, arguments, unlabelled="") for path in paths))
    if not pairs:
        line = f"names no video of {arguments.first}"
        raise InputError(f"{arguments.second}: {line}; both must be about the same videos")
    need_durations([first for first, _ in pairs], arguments.first)
    for line in _incomparable(pairs, *paths):
        print(line, file=sys.stderr)
    found = agreements(pairs)
    if arguments.json:
        print(json.dumps([asdict(one) for one in found], indent=1))
        return
    print("kappa  agreed  bouts A  bouts B  matched  tIoU  label")
    for one in found:
        kappa, tiou = (
            "    –" if each is None else f"{each:5.2f}" for each in (one.kappa, one.tiou)
        )
        counts = f"{one.first:7}  {one.second:7}  {one.matched:7}"
        print(f"{kappa}  {100 * one.agreed:4.0f} %  {counts} {tiou}  {one.label or 'any label'}")


def paired(first: list[Observed], second: list[Observed]) -> list[tuple[Observed, Observed]]:
    """Return the videos that both have, each with the duration that either knows."""
    others = {one.video_id: one for one in second}
    both = ((one, others[one.video_id]) for one in first if one.video_id in others)
    return [(replace(one, seconds=one.seconds or other.seconds), other) for one, other in both]


def agreements(pairs: Sequence[tuple[Observed, Observed]]) -> list[Agreement]:
    """Return the agreement about each label, if not all of one's lack them, and last about any."""
    sides = [set(own) for own in _labels(pairs)]
    labels = set().union(*sides) - {""} if {""} not in sides else set()
    return [_agreement(label, pairs) for label in (*sorted(labels), None)]


def _incomparable(pairs: Sequence[tuple[Observed, Observed]], *names: Path) -> Iterator[str]:
    """Yield lines about events without a label, and labels of which each has its own."""
    named = {name: own - {""} for name, own in zip(names, map(set, _labels(pairs)), strict=True)}
    for name, own in zip(names, _labels(pairs), strict=True):
        if "" in own and any(named.values()):
            some = f"{own.count('')} of {counted(len(own), 'event')}"
            yield f"{name}: {some} without a label: compared as 'any label' alone"
    if all(named.values()) and not set.intersection(*named.values()):
        each = ", ".join(f"{brief(sorted(own))} in {name}" for name, own in named.items())
        yield f"no label is in both, so compare 'any label': {each}"


def _labels(pairs: Sequence[tuple[Observed, Observed]]) -> list[list[str]]:
    """Return the labels of all events of the one and of the other."""
    return [[e.label for pair in pairs for e in pair[side].instances] for side in (0, 1)]


def _agreement(label: str | None, pairs: Sequence[tuple[Observed, Observed]]) -> Agreement:
    total = both = first = second = 0.0
    counts, tious = [0, 0], []
    for one, other in pairs:
        mine, theirs = one.spans(label), other.spans(label)
        total += one.seconds
        first += overlap(mine, 0, one.seconds)
        second += overlap(theirs, 0, one.seconds)
        both += sum(overlap(theirs, start, min(end, one.seconds)) for start, end in mine)
        bouts = [np.array(each.bouts(label)).reshape(-1, 2) for each in (one, other)]
        counts = [count + len(rows) for count, rows in zip(counts, bouts, strict=True)]
        tious += matches(*bouts)
    agreed = (both + total - first - second + both) / total
    return Agreement(
        label=label,
        kappa=cohens_kappa(agreed, first / total, second / total),
        agreed=agreed,
        first=counts[0],
        second=counts[1],
        matched=len(tious),
        tiou=float(np.mean(tious)) if tious else None,
    )


def cohens_kappa(agreed: float, first: float, second: float) -> float | None:
    """Return Cohen's kappa of a yes or no, given the shares of agreement and of each one's yes."""
    chance = first * second + (1 - first) * (1 - second)
    return None if chance > 1 - 1e-12 else (agreed - chance) / (1 - chance)


def matches(first: Float64, second: Float64) -> list[float]:
    """Return the tIoU of matched bouts: the most that can match, and of these the closest pairs."""
    from scipy.optimize import linear_sum_assignment

    if not len(first) or not len(second):
        return []
    tiou = temporal_iou(first, second)
    same = tiou >= _LEAST
    worth = np.where(same, 1 + tiou / (2 * min(tiou.shape) + 1), 0)  # a pair is worth any closeness
    rows, columns = linear_sum_assignment(worth, maximize=True)
    pairs = zip(rows, columns, strict=True)
    return [float(tiou[pair]) for pair in pairs if same[pair]]
