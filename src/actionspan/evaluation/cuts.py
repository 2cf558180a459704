"""Proposals from shot boundaries alone: a rule that knows cuts and lengths, and no action.

In footage that is spliced from clips every instance begins and ends at a cut, and this rule scores
like a trained network. So it is what a figure of edited footage has to be held against; in uncut
footage it finds next to nothing.

A cut is a frame that differs from the one before it more than its neighbours do. Candidates are
runs of 1 to 6 shots. One is worth the density of the training instances' lengths at its own, times
exp(s - 4 m): s is how much the colours change at its weaker end, m the most at a cut inside it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from scipy.ndimage import maximum_filter1d, uniform_filter1d
from scipy.stats import gaussian_kde

from actionspan.arrays import Float64, UInt8
from actionspan.video.decode import read_frames

MOST_SHOTS = 6  # of a proposal
_SIZE = 80, 60  # pixels that frames are reduced to
_LEVELS = 8  # of each colour, in histograms
_AROUND = 12  # frames on each side that a cut is held against
_TIMES = 3.0  # their mean difference that a cut's is, at least
_LEAST = 0.02  # the least difference of a cut, 0 … 1
_INSIDE = 4.0


class Changes(NamedTuple):
    """How each frame of a video differs from the one before it; 0 for the first."""

    seconds: Float64  # (N,) time stamps
    difference: Float64  # (N,) mean absolute difference of grey values, 0 … 1
    colours: Float64  # (N,) distance of the colour histograms, 0 … 1


def frame_changes(path: Path) -> Changes:
    """Decode a video, reduced, and compare its frames.

    Raises:
        InputError: The file is not a video, or its decoding breaks off.
    """
    rows = []
    before: tuple[UInt8, Float64] | None = None
    for frame in read_frames(path):
        small = cv2.resize(frame.picture(), _SIZE, interpolation=cv2.INTER_AREA)
        grey = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
        bins = [_LEVELS] * 3
        histogram = cv2.calcHist([small], [0, 1, 2], None, bins, [0, 256] * 3) / grey.size
        row = [frame.seconds, 0.0, 0.0]
        if before is not None:
            row[1] = cv2.norm(grey, before[0], cv2.NORM_L1) / (255 * grey.size)
            row[2] = cv2.norm(histogram, before[1], cv2.NORM_L1) / 2
        before = grey, histogram
        rows.append(row)
    return Changes(*np.array(rows, np.float64).reshape(-1, 3).T)


def find_cuts(changes: Changes) -> tuple[Float64, Float64]:
    """Return when a video is cut, (K,) in seconds, and how much the colours change there, (K,)."""
    difference, width = changes.difference, 2 * _AROUND + 1
    sums = uniform_filter1d(difference, width, mode="nearest") * width
    others = (sums - difference) / (width - 1)
    highest = maximum_filter1d(difference, 2 * (_AROUND // 3) + 1, mode="nearest")
    is_cut = (difference == highest) & (difference >= np.maximum(_TIMES * others, _LEAST))
    return changes.seconds[is_cut], changes.colours[is_cut]


def cut_proposals(
    cuts: Float64, colours: Float64, duration: float, lengths: Sequence[float], most: int
) -> tuple[Float64, Float64]:
    """Return the at most `most` runs of shots (P, 2) that are worth most, and their worth (P,).

    Args:
        cuts: (K,) when the video is cut, in seconds, rising.
        colours: (K,) how much the colours change there; the ends of the video count as 1.
        duration: Of the video in seconds.
        lengths: Of training instances in seconds; of fewer than two that differ, no length counts
            for more than another.
        most: How many are kept.
    """
    inside = (cuts > 0) & (cuts < duration)
    times = np.concatenate([[0.0], cuts[inside], [duration]])
    strength = np.concatenate([[1.0], colours[inside], [1.0]])
    logarithms = np.log([length for length in lengths if length > 0])
    usual = gaussian_kde(logarithms) if len(np.unique(logarithms)) > 1 else None
    segments, worth = [], []
    for shots in range(1, min(MOST_SHOTS, len(times) - 1) + 1):
        first, last = times[:-shots], times[shots:]
        ends = np.minimum(strength[:-shots], strength[shots:])
        within = np.zeros_like(ends)
        if shots > 1:
            windows = np.lib.stride_tricks.sliding_window_view(strength[1:-1], shots - 1)
            within = windows.max(axis=1)
        density = usual(np.log(last - first)) if usual is not None else np.ones_like(ends)
        segments.append(np.stack([first, last], axis=1))
        worth.append(density * np.exp(ends - _INSIDE * within))
    scores = np.concatenate(worth)
    order = np.argsort(-scores, kind="stable")[:most]
    return np.concatenate(segments)[order], scores[order]
