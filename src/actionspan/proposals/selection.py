"""Selection of the proposals that find the most, and of distinct events for a reader.

A list of proposals is worth the recall that it is expected to reach: the sum over all cells of the
instances expected there, times the worth of the list's best tIoU with an instance there. Each
proposal is the one that adds the most to those before. The worth of a list is submodular, so every
beginning of it is worth at least 1 − 1/e of the best list of its length (Nemhauser, Wolsey and
Fisher, 1978), and the gain of a proposal never rises along the
list. No suppression is needed: overlap with a chosen proposal adds little.

An event starts and ends at the medians of the instances that a chosen cell is expected to find. It
is right where it overlaps an instance by a tIoU of 0.5 that no event before it does. Its chance
follows from its gain in the instances expected to be found, by a logistic curve (Platt, 1999)
fitted on training videos with models that never saw them.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64, pairwise_tiou, temporal_iou
from actionspan.proposals.settings import MOST_EVENTS, EventSettings, SelectionSettings


def recall_reached(tiou: Float32) -> Float32:
    """Return the share of the thresholds 0.5 … 0.95 that are reached, on a straight line."""
    reached = (tiou - np.float32(0.475)) / np.float32(0.5)
    np.minimum(reached, 1, out=reached)
    reached *= tiou >= 0.5
    return reached


def found(tiou: Float32) -> Float32:
    """Return 1 where an instance is found at tIoU 0.5."""
    return (tiou >= 0.5).astype(np.float32)


def select(
    cells: Float64,
    density: Float64,
    settings: SelectionSettings | None = None,
    reach: Callable[[Float32], Float32] = recall_reached,
) -> tuple[Int64, Float64]:
    """Choose proposals one by one, each the cell that adds the most to the expected recall.

    Only the cells of highest density count, and only those worth the most alone are chosen from.

    Args:
        cells: (N, 2) segments.
        density: (N,) instances expected at each.
        settings: How many to choose and to look at.
        reach: The worth of a proposal, 0…1, on instances with these tIoU; not falling.

    Returns:
        Rows of `cells` (K,) in the order of the choice, and gains (K,), never rising: the instances
        that each adds, times the worth reached on them.

    Raises:
        ValueError: The density is negative or not finite.
    """
    settings = settings or SelectionSettings()
    if not (np.isfinite(density) & (density >= 0)).all():
        raise ValueError("density: numbers of 0 or more")
    # 1. what each of the likeliest cells reaches on the others
    likely = np.argsort(-density, kind="stable")[: settings.counted]
    expected = density[likely].astype(np.float32)
    counted = cells[likely].astype(np.float32)
    reached = reach(pairwise_tiou(counted, counted))
    worth = reached @ expected
    # 2. those to choose from, by what each is worth alone
    best = np.argsort(-worth, kind="stable")[: settings.considered]
    reached = reached[best]
    # A gain can only fall as the list grows: one worked out earlier is a bound.
    heap = [(-float(worth[cell]), place, 0) for place, cell in enumerate(best)]
    heapq.heapify(heap)
    # 3. take the best with a gain that is up to date
    covered = np.zeros(len(likely), np.float32)
    chosen: list[int] = []
    gains: list[float] = []
    while heap and len(chosen) < settings.proposals:
        negative, place, length = heapq.heappop(heap)
        if length < len(chosen):
            gain = float(np.maximum(reached[place] - covered, 0) @ expected)
            heapq.heappush(heap, (-gain, place, len(chosen)))
            continue
        chosen.append(int(likely[best[place]]))
        gains.append(min(-negative, gains[-1]) if gains else -negative)
        np.maximum(covered, reached[place], out=covered)
    return np.array(chosen, np.int64), np.array(gains)


_BLOCK = 256  # segments at once
_LEAST = 1e-6  # a smaller gain counts as this
_ROOM = (10, MOST_EVENTS)  # fewest and most events that a video is given room for


class Calibration(NamedTuple):
    """chance = expit(offset + slope · log gain); events below the bar are not shown."""

    offset: float = 0.0
    slope: float = 1.0
    bar: float = 0.0

    def chance(self, gains: Float64) -> Float64:
        """Return the chance (N,) to be right of events that add these gains (N,)."""
        from scipy.special import expit  # no video waits for it

        logarithm = np.log(np.maximum(gains, _LEAST))
        chance: Float64 = expit(self.offset + self.slope * logarithm)
        return chance


def distinct_events(
    cells: Float64, density: Float64, settings: EventSettings
) -> tuple[Float64, Float64]:
    """Return the segments (K, 2) of a video's events and their gains (K,), best first.

    Each is where the instances typically are that a cell finds at tIoU 0.5. The cells are those
    that add the most to the instances expected to be found. An event shares no more than `overlap`
    of the shorter of both with any event before.
    """
    most = settings.events or math.ceil(np.clip(2 * density.sum(), *_ROOM))
    looked_at = SelectionSettings(proposals=5 * most)
    chosen, gains = select(cells, density, looked_at, found)
    segments = typical_extents(cells[chosen], cells, density, looked_at.counted)
    kept = distinct(segments, settings.overlap, most)
    return segments[kept], gains[kept]


def typical_extents(
    segments: Float64, cells: Float64, density: Float64, counted: int = 1500
) -> Float64:
    """Return for segments (K, 2) the median start and end of the instances expected around each.

    These are at the cells (N, 2), of a density (N,), with a tIoU of 0.5 or more; only the `counted`
    cells of the highest density count. No other start and end are nearer to the instances' starts
    and ends, on average.
    """
    likely = np.argsort(-density, kind="stable")[:counted]
    cells, density = cells[likely], density[likely]
    extents = segments.copy()
    for first in range(0, len(segments), _BLOCK):
        own = slice(first, first + _BLOCK)
        weight = np.where(temporal_iou(segments[own], cells) >= 0.5, density, 0.0)  # (B, N)
        for side in (0, 1):
            order = np.argsort(cells[:, side], kind="stable")
            below = weight[:, order].cumsum(axis=1)
            middle = (below >= below[:, -1:] / 2).argmax(axis=1)
            medians = cells[order[middle], side]
            extents[own, side] = np.where(below[:, -1] > 0, medians, extents[own, side])
    return extents


def distinct(segments: Float64, overlap: float, most: int) -> list[int]:
    """Return at most `most` rows of segments (N, 2), best first, that overlap none before much.

    Two share no more than `overlap` of the shorter of both.
    """
    kept: list[int] = []
    for place in range(len(segments)):
        if not shares_much(segments[place : place + 1], segments[kept], overlap).any():
            kept.append(place)
        if len(kept) == most:
            break
    return kept


def shares_much(segments: Float64, others: Float64, overlap: float) -> NDArray[np.bool_]:
    """Return (N, M) whether segments (N, 2) and (M, 2) share more of the shorter of both."""
    start, end = segments.T[..., None]
    shared = np.minimum(end, others[:, 1]) - np.maximum(start, others[:, 0])
    shorter = np.minimum(end - start, others[:, 1] - others[:, 0])
    much: NDArray[np.bool_] = shared > overlap * shorter
    return much


def found_instances(events: Float64, instances: Float64) -> Int64:
    """Return the instance (G, 2) that each event (K,) is the first to find at tIoU 0.5, else -1."""
    found = np.full(len(events), -1)
    free = np.full(len(instances), True)
    for place, row in enumerate(temporal_iou(events, instances)):
        row = np.where(free, row, 0.0)
        if row.max(initial=0) >= 0.5:
            found[place] = row.argmax()
            free[found[place]] = False
    return found


def right_events(events: Float64, instances: Float64) -> Float64:
    """Return 1 for each event (K,) that first finds an instance (G, 2) at tIoU 0.5, else 0."""
    return (found_instances(events, instances) >= 0).astype(np.float64)


def calibrate(gains: Float64, right: Float64, instances: int) -> Calibration:
    """Fit the curve, and the bar that makes the best F1 score on the same events.

    The events are of many videos, with `instances` in all; `gains` are (N,), and `right` (N,) is 1
    where an event is right. As Platt's, the curve is drawn towards the middle by one right and one
    wrong event more.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

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
    return segments[chances >= bar], chances[chances >= bar]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A video's proposals (K, 2) with scores, and the reader's events (E, 2) with chances.

    Events are None where no density shows which are right.
    """

    segments: Float64
    scores: Float64
    events: Float64 | None = None
    chances: Float64 | None = None


def choose_cells(
    cells: Float64,
    density: Float64,
    calibration: Calibration,
    selection: SelectionSettings | None = None,
    events: EventSettings | None = None,
) -> Chosen:
    """Return the proposals and events among cells (N, 2) in seconds of a density (N,)."""
    chosen, gains = select(cells, density, selection)
    shown, chances = shown_events(cells, density, calibration, events or EventSettings())
    return Chosen(segments=cells[chosen], scores=gains, events=shown, chances=chances)
