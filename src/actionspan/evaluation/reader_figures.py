"""What a reader gets of a list: how many of its first events are right, found, and repeated.

An event is right where it is the first of its video's list to reach a tIoU of 0.5 with an instance,
as in `proposals.events.right_events` and for average precision. So a second event of an instance is
wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.arrays import Float64
from actionspan.dataset.tables import Annotation
from actionspan.evaluation.outcomes import segments_of
from actionspan.evaluation.rows import NO_PROPOSALS, check_truth, match_proposals
from actionspan.evaluation.score_quality import (
    ScoreBin,
    error_by_luck,
    first_error,
    score_bins,
    scored_proposals,
)

NUMBERS = (1, 3, 5, 10)
BINS = 5  # of scores; a reader's list is short
_LOOKED_AT = 5  # ranks among which repeats are counted
_REPEATED = 0.5  # of the shorter of two events; a repeat shares more


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """How many events are right, of those that are given and of the instances to find."""

    right: int
    given: int
    instances: int

    @property
    def precision(self) -> float | None:
        """Share of the given events that is right; None where nothing is given."""
        return self.right / self.given if self.given else None

    @property
    def recall(self) -> float:
        """Share of the instances that is found; every right event finds one."""
        return self.right / self.instances

    def scores(self) -> dict[str, float | None]:
        """Return both, as the record has them."""
        return {"precision": self.precision, "recall": self.recall}


@dataclass(frozen=True, kw_only=True)
class ReaderFigures:
    """What a list is worth to a reader of a subset's videos."""

    videos: int
    empty: int
    """Videos of which nothing is given."""
    all: Judgement
    first: Mapping[int, Judgement]
    """Of the best 1, 3, 5 and 10 events of each video."""
    repeats: float | None
    """Share of the events of ranks 2 to 5 that repeat a better one; None where there is none."""
    bins: Sequence[ScoreBin]
    """The events by score; `first[0]` of a bin is the share that is right."""
    error: float | None
    """Expected calibration error of the score as the chance to be right; None where a score lies
    outside 0…1, or where there is no event."""
    error_by_luck: float | None
    """What it would be on average if each score were exactly the chance to be right."""

    @property
    def per_video(self) -> float:
        """How many events a video has on average."""
        return self.all.given / self.videos


def reader_figures(
    annotations: Sequence[Annotation], lists: Mapping[str, ArrayLike]
) -> ReaderFigures:
    """Judge the lists of a subset's videos as a reader does, who starts at the best event.

    Args:
        annotations: The videos of one subset, also those without an instance, of which every event
            is wrong. Lists of other videos are left out.
        lists: For each video id, (P, 3) start and end in seconds and score, in any order.

    Raises:
        ValueError: A row is reversed or not finite, there is no instance at all, or two ids of
            the lists mean one video.
    """
    truth = check_truth({video.video_id: segments_of(video) for video in annotations})
    matched, _ = match_proposals(lists, truth)
    ranked = [matched.get(name, NO_PROPOSALS)[:, :2] for name in truth]
    scored = scored_proposals(annotations, lists)  # in the same order
    ends = np.cumsum([len(rows) for rows in ranked])
    right = np.split(scored.first[:, 0], ends[:-1])
    instances = sum(map(len, truth.values()))

    def judge(number: int | None) -> Judgement:
        chosen = np.concatenate([row[:number] for row in right])
        return Judgement(right=int(chosen.sum()), given=len(chosen), instances=instances)

    repeated = np.concatenate([repeats(rows[:_LOOKED_AT])[1:] for rows in ranked])
    bins = score_bins(scored, BINS)
    return ReaderFigures(
        videos=len(truth),
        empty=sum(not len(rows) for rows in ranked),
        all=judge(None),
        first={number: judge(number) for number in NUMBERS},
        repeats=float(repeated.mean()) if len(repeated) else None,
        bins=bins,
        error=first_error(scored, bins),
        error_by_luck=error_by_luck(scored, bins),
    )


def repeats(events: Float64) -> NDArray[np.bool_]:
    """Return whether each event shares more than half of the shorter of both with a better one.

    Args:
        events: (K, 2) starts and ends, best first.
    """
    starts, ends = events.T
    shared = np.minimum(ends[:, None], ends) - np.maximum(starts[:, None], starts)  # (K, K)
    shorter = np.minimum((ends - starts)[:, None], ends - starts)
    return np.asarray(np.tril(shared > _REPEATED * shorter, -1).any(axis=1))
