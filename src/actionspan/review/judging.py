"""How a model is judged on corrected videos: the instances that its lists and proposals find."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from actionspan.annotations.tables import Instance
from actionspan.arrays import Float64
from actionspan.evaluation.baseline import tiles
from actionspan.evaluation.recall import average_recall_activitynet
from actionspan.evaluation.reliability import ScoredProposals, ranking
from actionspan.proposals import selection
from actionspan.proposals import settings as knobs
from actionspan.proposals.grouping import group_proposals
from actionspan.proposals.model_bundle import Bundle
from actionspan.proposals.selection import Calibration, calibrate, distinct_events, right_events
from actionspan.propose.proposer import bouts_listed, predicted
from actionspan.review.footage import Encoded

_LEAST_RANKING = 0.7  # pairs of a right and a wrong event that chances rank rightly, to be shown
FEWEST_FOR_CHANCES = 50  # instances; of fewer, chances were off by up to 0.8 (docs/benchmarks.md)
Truth = Mapping[str, Sequence[Instance]]
Cells = tuple[Float64, Float64]  # (N, 2) segments in seconds and the density (N,) at each


class Figures(NamedTuple):
    """Scores of a model on corrected videos that it has not seen."""

    auc: float  # in percent
    first_right: int  # videos with a right first event
    videos: int  # in which something happens
    in_as_many: int  # instances found by as many events as a video has instances
    instances: int

    def better_than(self, other: "Figures") -> bool:
        """Return whether a person is shown more, or as much and all proposals find more.

        Nothing is better than a list that finds everything.
        """
        better = (self.in_as_many, self.auc) > (other.in_as_many, other.auc)
        return better and other.in_as_many < other.instances


def expected(bundle: Bundle, one: Encoded) -> Cells:
    """Return the density of a model for a video."""
    raw, facts = one.read()
    seconds = one.video.duration_seconds
    prediction, before = predicted(bundle, raw, facts, seconds)
    return bundle.expected(prediction, seconds, before)


def figures_of(
    cells: Mapping[str, Cells],
    truth: Truth,
    ranked: Mapping[str, Float64] | None = None,
    lists: Mapping[str, Float64] | None = None,
) -> Figures:
    """Return the figures of proposals among the cells of each video, or of `ranked` segments.

    A video's `lists` (E, 2) replace its events.
    """
    ranked = ranked or {}
    proposals = dict(ranked)
    events = {name: rows[:, :2] for name, rows in ranked.items()}
    for name, found in cells.items():
        chosen, gains = selection.select(*found)
        proposals[name] = np.column_stack([found[0][chosen], gains])
        events[name] = distinct_events(*found, knobs.EventSettings())[0]
    events |= lists or {}
    instances = {name: segments_of(own) for name, own in truth.items() if own}
    right = {name: right_events(events[name], own) for name, own in instances.items()}
    return Figures(
        auc=average_recall_activitynet(instances, proposals).auc,
        first_right=int(sum(row[:1].sum() for row in right.values())),
        videos=len(instances),
        in_as_many=int(sum(right[name][: len(own)].sum() for name, own in instances.items())),
        instances=sum(map(len, instances.values())),
    )


def segments_of(instances: Sequence[Instance]) -> Float64:
    """Return the (G, 2) starts and ends of instances in seconds."""
    return np.array([(one.start, one.end) for one in instances], np.float64).reshape(-1, 2)


def listed_bouts(bundle: Bundle, one: Encoded) -> Float64 | None:
    """Return the bouts (B, 2) of a video if a model lists them, else None."""
    return bouts_listed(bundle, one.facts(), one.video.duration_seconds)


def listed_cells(bundle: Bundle, cells: Cells) -> Float64:
    """Return the events (E, 2) that a model lists of a video without bouts."""
    assert bundle.density is not None
    return selection.shown_events(*cells, bundle.density.calibration, bundle.listing(cells[1]))[0]


def tiles_of(one: Encoded, parts: int) -> Float64:
    """Return (N, 3) segments and scores of a video's equal `parts`."""
    return np.column_stack(tiles(one.video.duration_seconds, parts))


def motion_of(one: Encoded) -> Float64:
    """Return (N, 3) segments and scores of motion alone, grouped."""
    segments, scores = group_proposals(one.motion(), one.video.duration_seconds)
    return np.column_stack([segments, scores])


def calibration_of(cells: Mapping[str, Cells], truth: Truth) -> Calibration:
    """Fit the chances of events on videos that their model has not seen.

    The bar is lower the fewer instances it rests on: by chance it may hide most instances.
    """
    gains, right = [np.zeros(0)], [np.zeros(0)]
    for name, found in cells.items():
        segments, gained = distinct_events(*found, knobs.EventSettings())
        gains.append(gained)
        right.append(right_events(segments, segments_of(truth[name])))
    total = sum(map(len, truth.values()))
    fitted = calibrate(np.concatenate(gains), np.concatenate(right), total)
    return fitted._replace(bar=fitted.bar * min(1.0, total / FEWEST_FOR_CHANCES))


def ranks_well(cells: Mapping[str, Cells], truth: Truth, calibration: Calibration) -> bool:
    """Return whether right events have higher chances than wrong ones often enough to be shown."""
    chances, right = [np.zeros(0)], [np.zeros(0)]
    for name, found in cells.items():
        shown = selection.shown_events(*found, calibration, knobs.EventSettings())
        chances.append(shown[1])
        right.append(right_events(shown[0], segments_of(truth[name])))
    scored = ScoredProposals(
        scores=np.concatenate(chances),
        best_tiou=np.concatenate(right),
        first=np.concatenate(right)[:, None] > 0,
        videos=len(truth),
    )
    share = ranking(scored)
    return share >= _LEAST_RANKING if share is not None else bool(scored.first.all())
