"""What figures draw: recall curves, bins of missed instances, bins of scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float64
from actionspan.evaluation import recall
from actionspan.evaluation.summary import Record

AR_AGAINST_AN = "AR vs AN"
RECALL_AGAINST_TIOU = "recall vs tIoU at AN=100"
AREA = "AUC"
PANELS = (
    (AR_AGAINST_AN, "Average recall", "average number of proposals (AN)"),
    (RECALL_AGAINST_TIOU, "Recall at AN = 100", "tIoU threshold"),
)
"""Kind, title and the label of x of each panel of a figure."""


class Curve(NamedTuple):
    """The points of a curve as fractions; `low` and `high` are the interval of each."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def curves_of(record: Record) -> dict[str, Curve]:
    """Return a method's curves by kind; the curve of AUC is a point at x = 100."""
    recall, intervals = record["recall"], record["recall@100_interval"]
    low, high = zip(*(intervals[tiou] for tiou in recall), strict=True)
    area = [[percent / 100] for percent in (record["AUC"], *record["AUC_interval"])]
    return {
        AR_AGAINST_AN: Curve(record["AN"], record["AR"], *record["AR_interval"]),
        RECALL_AGAINST_TIOU: Curve(
            list(map(float, recall)), [recalls[-1] for recalls in recall.values()], low, high
        ),
        AREA: Curve([100.0], *area),
    }


class _Characteristic(NamedTuple):
    """One way to sort instances into bins: up to the first edge, between edges, above the last."""

    name: str
    title: str
    edges: tuple[float, ...]
    labels: tuple[str, ...]


CHARACTERISTICS = (
    _Characteristic(
        "coverage",
        "Length as a share of the video",
        (0.02, 0.04, 0.06, 0.08, 0.2, 0.4, 0.6, 0.8),
        ("≤ 2%", "2–4%", "4–6%", "6–8%", "8–20%", "20–40%", "40–60%", "60–80%", "> 80%"),
    ),
    _Characteristic(
        "length",
        "Length in seconds",
        (3, 6, 12, 18, 30, 60, 120, 180),
        ("≤ 3", "3–6", "6–12", "12–18", "18–30", "30–60", "60–120", "120–180", "> 180"),
    ),
    _Characteristic(
        "position",
        "Centre, as a share of the video",
        (0.2, 0.4, 0.6, 0.8),
        ("0–20%", "20–40%", "40–60%", "60–80%", "80–100%"),
    ),
    _Characteristic(
        "instances",
        "Instances in the video",
        (1, 4, 8, 40, 80),
        ("1", "2–4", "5–8", "9–40", "41–80", "> 80"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Bin:
    """The instances of one bin, and how many of them are found."""

    characteristic: str
    label: str
    above: float | None
    up_to: float | None
    """The edges, if the bin has them; the lower one lies outside."""
    instances: int
    found: tuple[int, ...]
    """At tIoU 0.5, 0.7 and 0.9, by what their videos contribute at AN = 100."""
    misses_share: tuple[float | None, ...]
    """At the same tIoU, its misses as a share of all misses; None where nothing is missed."""
    average_recall: float | None
    """AR@100 of these instances; None where there is none."""

    @property
    def missed(self) -> tuple[int, ...]:
        """How many are not found, at the same tIoU."""
        return tuple(self.instances - found for found in self.found)


NAMES = tuple(f"{threshold:.1f}" for threshold in recall.MISSES_THRESHOLDS)


@dataclass(frozen=True, kw_only=True)
class ScoredProposals:
    """All P proposals given for a subset, with their worth."""

    scores: Float64
    """(P,) as given, on any scale."""
    best_tiou: Float64
    """(P,) best tIoU with any instance of the video; 0 where it has none."""
    first: NDArray[np.bool_]
    """(P, 2) whether each is the first to find an instance at tIoU 0.5 and 0.7, as detections are
    matched for average precision."""
    videos: int
    """How many videos the subset has, also without an instance or a proposal."""

    @property
    def is_share(self) -> bool:
        """Whether all scores lie in 0…1, so that they can be read as a tIoU or a chance."""
        return bool(((self.scores >= 0) & (self.scores <= 1)).all())


@dataclass(frozen=True, kw_only=True)
class ScoreBin:
    """Proposals of neighbouring scores, with their worth."""

    proposals: int
    lowest: float
    highest: float
    mean_score: float
    mean_tiou: float
    """Mean of each proposal's best tIoU."""
    share: tuple[float, float]
    """Share that overlaps an instance by 0.5 and 0.7, also one that is found already."""
    first: tuple[float, float]
    """Share that is the first to find an instance at 0.5 and 0.7: the precision of detections."""

    def cells(self) -> list[Any]:
        """Return these values in order."""
        *values, shares, firsts = vars(self).values()
        return [*values, *shares, *firsts]
