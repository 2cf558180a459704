"""The list for a reader: distinct events, each with its chance to be right, down to a bar.

An event is right where it overlaps an instance by a tIoU of 0.5 that no event before it does. The
chance follows from what the event adds to the instances expected to be found, by a logistic curve
(Platt, 1999) fitted on training videos with models that never saw them.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from actionspan.arrays import Float64
from actionspan.proposals.overlap import temporal_iou
from actionspan.proposals.selection import found, select
from actionspan.proposals.settings import EventSettings, SelectionSettings

RIGHT = 0.5  # tIoU
_LEAST = 1e-6  # a smaller gain counts as this
_LOOKED_AT = 5  # cells looked at for each event that is wanted


class Calibration(NamedTuple):
    """chance = expit(offset + slope · log gain); events below the bar are not shown."""

    offset: float = 0.0
    slope: float = 1.0
    bar: float = 0.0

    def chance(self, gains: Float64) -> Float64:
        """Return the chance (N,) to be right of events that add these gains (N,)."""
        logarithm = np.log(np.maximum(gains, _LEAST))
        chance: Float64 = expit(self.offset + self.slope * logarithm)
        return chance


def distinct_events(
    cells: Float64, density: Float64, settings: EventSettings
) -> tuple[Float64, Float64]:
    """Return the segments (K, 2) of a video's events and their gains (K,), best first.

    Each adds the most to the instances expected to be found at tIoU 0.5, of the cells that share
    no more than `overlap` of the shorter of both with any event before.
    """
    looked_at = SelectionSettings(proposals=_LOOKED_AT * settings.events)
    chosen, gains = select(cells, density, looked_at, found)
    kept: list[int] = []
    for place, cell in enumerate(chosen):
        start, end = cells[cell]
        others = cells[chosen[kept]]
        shared = np.minimum(end, others[:, 1]) - np.maximum(start, others[:, 0])
        shorter = np.minimum(end - start, others[:, 1] - others[:, 0])
        if (shared <= settings.overlap * shorter).all():
            kept.append(place)
        if len(kept) == settings.events:
            break
    return cells[chosen[kept]], gains[kept]


def right_events(events: Float64, instances: Float64) -> Float64:
    """Return 1 for each event (K,) that is the first to find an instance (G, 2), else 0."""
    right = np.zeros(len(events))
    free = np.full(len(instances), True)
    for place, row in enumerate(temporal_iou(events, instances)):
        row = np.where(free, row, 0.0)
        if row.max(initial=0) >= RIGHT:
            right[place] = 1
            free[row.argmax()] = False
    return right


def calibrate(gains: Float64, right: Float64, instances: int) -> Calibration:
    """Fit the curve, and the bar that makes the best F1 score on the same events.

    The curve is drawn towards the middle by one right and one wrong event more, as Platt's is.

    Args:
        gains: (N,) of events of many videos.
        right: (N,) 1 where the event is right.
        instances: How many there are in those videos.
    """
    if not len(gains):
        return Calibration()
    logarithm = np.log(np.maximum(gains, _LEAST))
    positive, negative = right.sum(), len(right) - right.sum()
    target = np.where(right > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(parameters: Float64) -> tuple[float, Float64]:
        score = parameters[0] + parameters[1] * logarithm
        value = np.logaddexp(0, score) - target * score
        error = expit(score) - target
        return float(value.sum()), np.array([error.sum(), (error * logarithm).sum()])

    fitted = minimize(loss, [0.0, 1.0], jac=True, bounds=[(None, None), (0.0, None)])
    curve = Calibration(*map(float, fitted.x))
    return curve._replace(bar=_best_bar(curve.chance(gains), right, instances))


def _best_bar(chances: Float64, right: Float64, instances: int) -> float:
    """Return the lowest chance that is shown where F1 is best."""
    order = np.argsort(-chances, kind="stable")
    shown = np.arange(1, len(order) + 1)
    scores = 2 * right[order].cumsum() / (shown + instances)
    falling = chances[order]
    scores[:-1][falling[1:] == falling[:-1]] = -1  # equal chances are shown together
    return float(falling[scores.argmax()])


def shown_events(
    cells: Float64, density: Float64, calibration: Calibration, settings: EventSettings
) -> tuple[Float64, Float64]:
    """Return the segments (K, 2) and chances (K,) of the events to show, best first."""
    segments, gains = distinct_events(cells, density, settings)
    chances = calibration.chance(gains)
    bar = calibration.bar if settings.bar is None else settings.bar
    shown = chances >= bar
    return segments[shown], chances[shown]
