"""The lists of a search: of each video its most similar segments, and the best of all videos."""

from collections.abc import Mapping, Sequence

import numpy as np

from actionspan.arrays import Float32, Float64
from actionspan.find.examples import Similar
from actionspan.proposals.selection import distinct
from actionspan.proposals.settings import EventSettings, SuppressionSettings
from actionspan.proposals.suppression import soft_nms
from actionspan.propose.proposed import Proposed

_LISTED = 100  # proposals of a video


def listed(
    found: Mapping[str, Sequence[Similar]],
    labels: Sequence[str],
    durations: Mapping[str, float],
    motion: Mapping[str, Float32],
    most: int,
) -> dict[str, Proposed]:
    """Return the list of each video; its events are among the `most` best of all videos.

    Args:
        found: By video, the segments that are like what each label means.
        labels: One, empty where it has no name, or several.
        durations: By video, in seconds.
        motion: By video, the curve that is drawn.
        most: How many events there are at most.
    """
    made = {name: _of_video(each, durations[name]) for name, each in found.items()}
    every = np.concatenate([scores[events] for _, scores, _, events in made.values()])
    bar = np.sort(every)[-most] if len(every) > most else 0.0
    proposed = {}
    for name, (segments, scores, label, events) in made.items():
        shown = [row for row in events if scores[row] >= bar]
        named = np.eye(len(labels))[label] if any(labels) else None
        proposed[name] = Proposed(
            duration_seconds=durations[name],
            segments=segments,
            scores=scores,
            motion=motion[name],
            classes=tuple(labels) if any(labels) else (),
            class_scores=named,
            events=segments[shown],
            chances=scores[shown],
            event_classes=None if named is None else named[shown],
        )
    return proposed


def _of_video(
    found: Sequence[Similar], duration: float
) -> tuple[Float64, Float64, Float64, list[int]]:
    """Return segments, scores and labels, best first, and the rows of the distinct ones."""
    rows = []
    for label, similar in enumerate(found):
        likely = similar.scores > 0
        segments, scores = similar.segments[likely], similar.scores[likely]
        kept, left = soft_nms(
            segments, scores, SuppressionSettings(keep=_LISTED), duration=duration
        )
        rows.append(np.column_stack([segments[kept], left, np.full(len(kept), label)]))
    table = np.concatenate(rows)
    table = table[np.argsort(-table[:, 2], kind="stable")[:_LISTED]]
    events = distinct(table[:, :2], EventSettings().overlap, _LISTED)
    return table[:, :2], table[:, 2], table[:, 3].astype(np.int64), events
