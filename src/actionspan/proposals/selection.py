"""Selection of the proposals that find the most, from the density of instances over a lattice.

What a list of proposals is worth is the recall that it is expected to reach: the sum over all cells
of the instances expected there, times what the list reaches on an instance that lies there. Each
proposal is the one that adds the most to those before. The worth of a list is submodular, so every
beginning of it is worth at least 1 − 1/e of the best list of its length (Nemhauser, Wolsey and
Fisher, 1978), and what a proposal adds never rises along the list. It takes the place of
suppression: what overlaps a chosen proposal adds little, for the reason that it finds little more.
"""

import heapq
from collections.abc import Callable

import numpy as np

from actionspan.arrays import Float32, Float64, Int64
from actionspan.proposals.settings import SelectionSettings

Reach = Callable[[Float32], Float32]
"""What a proposal reaches, 0…1, on instances that it overlaps by these tIoU."""


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
    reach: Reach = recall_reached,
) -> tuple[Int64, Float64]:
    """Choose proposals one by one, each the cell that adds the most to the expected recall.

    Only the cells of highest density count and only those worth the most alone are chosen from, as
    many as the settings say.

    Args:
        cells: (N, 2) segments.
        density: (N,) instances expected at each.
        settings: How many to choose and to look at.
        reach: What a proposal reaches on an instance; not falling with tIoU.

    Returns:
        chosen: (K,) rows of `cells` in the order of the choice.
        gains: (K,) the instances that each adds, times what is reached on them; never rising.

    Raises:
        ValueError: The density is negative or not finite.
    """
    settings = settings or SelectionSettings()
    if not (np.isfinite(density) & (density >= 0)).all():
        raise ValueError("density: numbers of 0 or more")
    likely = np.argsort(-density, kind="stable")[: settings.counted]
    expected = density[likely].astype(np.float32)
    reached = reach(_tiou(cells[likely].astype(np.float32)))
    worth = reached @ expected
    best = np.argsort(-worth, kind="stable")[: settings.considered]
    reached = reached[best]
    # A gain can only fall as the list grows: one worked out earlier is a bound.
    heap = [(-float(worth[cell]), place, 0) for place, cell in enumerate(best)]
    heapq.heapify(heap)
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


def _tiou(cells: Float32) -> Float32:
    """Return the tIoU (N, N) of cells with one another; `proposals.overlap` takes twice as long."""
    start, end = np.ascontiguousarray(cells.T)
    shared = np.minimum.outer(end, end)
    shared -= np.maximum.outer(start, start)
    hull = np.maximum.outer(end, end)
    hull -= np.minimum.outer(start, start)
    np.maximum(shared, 0, out=shared)
    tiou: Float32 = shared / hull
    return tiou
