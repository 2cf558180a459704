"""Shots of edited footage as segments: where a video is cut, instances may begin and end at cuts.

Candidates are runs of 1 to 6 shots. A run is worth exp(s - 4 m): s is how much the colours change
at its weaker end, m the most at a cut inside it.
"""

import numpy as np

from actionspan.arrays import Float64, temporal_iou

MOST_SHOTS = 6  # of a run
_INSIDE = 4.0
_LEAST_CHANGE = 0.3  # of colours at a cut between two shots; a smaller one may be a flash
_NEAR = 0.3  # tIoU of a segment and a run that may replace it
_SPREAD = 0.2  # of a segment's instances over the runs near it, in tIoU
_AT_CUT = 0.3  # seconds from a cut, or from an end of the video, within which an end is at it
_BLOCK = 1024  # segments held against runs at once


def shot_runs(cuts: Float64, duration: float) -> tuple[Float64, Float64]:
    """Return the runs of shots (R, 2) in seconds and what each is worth, (R,).

    Cuts are (K, 2) as `CutFinder.found` has them; the ends of the video count as 1.
    """
    inside = cuts[(cuts[:, 0] > 0) & (cuts[:, 0] < duration)]
    times = np.concatenate([[0.0], inside[:, 0], [duration]])
    strength = np.concatenate([[1.0], inside[:, 1], [1.0]])
    segments, worth = [], []
    for shots in range(1, min(MOST_SHOTS, len(times) - 1) + 1):
        ends = np.minimum(strength[:-shots], strength[shots:])
        within = np.zeros_like(ends)
        if shots > 1:
            windows = np.lib.stride_tricks.sliding_window_view(strength[1:-1], shots - 1)
            within = windows.max(axis=1)
        segments.append(np.stack([times[:-shots], times[shots:]], axis=1))
        worth.append(np.exp(ends - _INSIDE * within))
    return np.concatenate(segments), np.concatenate(worth)


def share_on_cuts(instances: Float64, cuts: Float64, duration: float) -> tuple[int, int]:
    """Return how many instances (G, 2) begin and end at cuts or ends of the video, and of how many.

    None counts in a video without cuts, which shows nothing.
    """
    shots = _between_shots(cuts)
    if not len(shots) or not len(instances):
        return 0, 0
    places = np.concatenate([[0.0], shots[:, 0], [duration]])
    near = np.abs(instances[..., None] - places).min(axis=2) <= _AT_CUT
    return int(near.all(axis=1).sum()), len(instances)


def on_shots(
    cells: Float64, density: Float64, cuts: Float64, duration: float, share: float
) -> tuple[Float64, Float64]:
    """Return segments with the runs of shots among them, and the instances expected at each.

    Of the instances expected at a segment, a share is at the runs near it, the more at one the
    nearer and the more it is worth. Where no run is near, all stay.

    Args:
        cells: (N, 2) segments in seconds.
        density: (N,) instances expected at each.
        cuts: (K, 2) of the video, see `CutFinder.found`.
        duration: Of the video in seconds.
        share: Of instances that begin and end at cuts, 0 … 1.
    """
    shots = _between_shots(cuts)
    if not share or not len(shots):
        return cells, density
    runs, worth = shot_runs(shots, duration)
    kept, moved = density.copy(), np.zeros(len(runs))
    lengths, size = cells[:, 1] - cells[:, 0], runs[:, 1] - runs[:, 0]
    order = np.lexsort((cells[:, 0], np.round(4 * np.log2(np.maximum(lengths, 1e-3)))))
    for first in range(0, len(order), _BLOCK):
        rows = order[first : first + _BLOCK]
        block, length = cells[rows], lengths[rows]
        close = (runs[:, 0] < block[:, 1].max()) & (runs[:, 1] > block[:, 0].min())
        close &= (size >= _NEAR * length.min()) & (size * _NEAR <= length.max())
        near = np.flatnonzero(close)
        overlap = temporal_iou(block, runs[near])  # (B, R')
        weight = np.where(overlap >= _NEAR, worth[near] * np.exp((overlap - 1) / _SPREAD), 0.0)
        total = weight.sum(axis=1)
        taken = np.where(total > 0, share * density[rows], 0.0)
        kept[rows] -= taken
        moved[near] += (taken / np.where(total > 0, total, 1.0)) @ weight
    return np.concatenate([cells, runs]), np.concatenate([kept, moved])


def _between_shots(cuts: Float64) -> Float64:
    return cuts[cuts[:, 1] >= _LEAST_CHANGE]
