"""When something moves in a video: runs of motion, and the repetitions that one consists of.

No learning: a run, a bout, begins where motion rises above the video's own level and ends where it
falls back, by two thresholds (the hysteresis of Canny, 1986). Motion is what blocks of the frame
change by beyond the video's noise; slow light and gain change all of them alike and do not count.
Where nothing moves no bout is found. A bout with changes that come again and again is divided into
its periods, the first peak of their correlation with themselves.
"""

from array import array

import cv2
import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Mask, UInt8
from actionspan.video.zones import Zones, blocks_inside

_BLOCKS = 20, 15  # of a frame
_RATE = 15.0  # frames a second that are compared, at most
_PIECE = 4096  # frames
_WITHIN = 0.25  # share of a block that is in a zone, from which on it counts
_LEVELS = 0.25  # grey levels, in which changes are kept: 300 bytes a frame
_TIMES, _LEAST, _MOST = 3.0, 1.5, 6.0  # bar of a change: a multiple of its noise; grey levels
_LIGHT = 1.0  # seconds, over which a common change counts as light
_STILL = 0.5  # share of a video at rest from which on all that moves is a bout
_FAINT, _FAINTEST = 0.004, 0.02  # least motion, in levels and as a share of the usual
_BUSY = 0.1  # share at rest below which a bout may be many: repetitions
_SMOOTH = 0.5  # seconds, over which motion is averaged elsewhere
_TOP, _HIGH, _LOW = 0.85, 0.5, 0.3  # quantile of motion, and the shares of it a bout reaches, keeps
_GAP, _SHORTEST, _MOVING = 0.5, 0.15, 0.3  # seconds between bouts, of one; share of it that moves
_PERIODS, _BLUR = (0.4, 8.0), 0.08  # seconds
_LOOKED_AT = 60.0  # seconds of a bout, of which its period is found
_RHYTHM, _PEAK = 0.08, 0.85  # least correlation of a repetition; share of the highest of a peak


class BoutFinder:
    """Compares the frames of a video with the one before, as they pass.

    With `zones` only the blocks in them count. Light is still of whole frames: a mover may
    fill a small zone.
    """

    def __init__(self, zones: Zones = ()) -> None:
        self._times = array("d")
        self._levels = bytearray()  # changes of the blocks as int8, frame by frame
        self._before: list[Float32] | None = None
        self._inside: Mask | None = None  # (H, W) the blocks that count; None: all
        self._common = array("d")  # with zones: the change that all blocks have in common
        if zones:
            shares = blocks_inside(zones, _BLOCKS)
            self._inside = shares >= min(_WITHIN, shares.max())
            self._shares = shares[self._inside].astype(np.float32)

    def watch(self, seconds: float, grey: UInt8, whole: UInt8 | None = None) -> None:
        """Take the next frame, small and grey; one that comes too soon is passed over.

        With zones `whole` is the frame itself, and `grey` shows the inside alone.
        """
        if self._times and seconds - self._times[-1] < 1 / _RATE - 1e-3:
            return
        pictures = [_means(each) for each in (grey, whole) if each is not None]
        before, self._before = self._before, pictures
        self._times.append(seconds)
        if before is None:
            return
        changes = pictures[0] - before[0]
        if self._inside is not None:
            self._common.append(float(np.median(_levels(pictures[-1] - before[-1]))))
            changes = changes[self._inside] / self._shares
        self._levels += _levels(changes).tobytes()

    def found(self) -> Float64:
        """Return (N, 3) starts and ends in seconds of the bouts and how much moves, most first."""
        count = _BLOCKS[0] * _BLOCKS[1] if self._inside is None else len(self._shares)
        levels = np.frombuffer(self._levels, np.int8).reshape(-1, count)
        common = None if self._inside is None else np.array(self._common)
        return find_bouts(np.array(self._times), levels, common, self._inside)


def _means(grey: UInt8) -> Float32:
    resized = cv2.resize(grey.astype(np.float32), _BLOCKS, interpolation=cv2.INTER_AREA)
    return np.asarray(resized, np.float32)


def _levels(changes: Float32) -> NDArray[np.int8]:
    levels: NDArray[np.int8] = np.rint(changes / _LEVELS).clip(-127, 127).astype(np.int8)
    return levels


def find_bouts(
    times: Float64,
    levels: NDArray[np.int8],
    common: Float64 | None = None,
    inside: Mask | None = None,
) -> Float64:
    """Return the bouts of T frames at `times`, with (T - 1, B) changes of blocks between them.

    The changes are in quarters of a grey level. `common` (T - 1,) are those that count as light, by
    default the medians of all blocks. `inside` (H, W) are the blocks that are there, by default
    all.

    Returns:
        (N, 3) start and end in seconds and the sum of motion, the highest first.
    """
    if len(levels) < 2:
        return np.zeros((0, 3))
    step = float(np.median(np.diff(times)))
    if common is None:
        pieces = range(0, len(levels), _PIECE)  # of a long video not all at once
        common = np.concatenate([np.median(levels[at : at + _PIECE], axis=1) for at in pieces])
    motion = _motion(levels, common, step, inside)
    busy = (motion == 0).mean() < _BUSY
    rows = []
    for first, end in _runs(motion, times, step):
        start, stop, moved = times[first], times[end], motion[first:end].sum()
        looked_at = min(end, first + int(_LOOKED_AT / step) + 1)
        seen = slice(first, looked_at)
        period = _period(_changes(levels[seen], common[seen]), step) if busy else None
        parts = 1 if period is None else max(1, round((stop - start) / period))
        edges = np.append(start + np.arange(parts) * (period or 0.0), stop)
        rows += [(*pair, moved) for pair in zip(edges[:-1], edges[1:], strict=True)]
    found = np.array(rows, np.float64).reshape(-1, 3)
    return found[np.argsort(-found[:, 2], kind="stable")]


def _changes(levels: NDArray[np.int8], common: Float64) -> Float32:
    """Return changes in grey levels, less those that all blocks have in common."""
    changes = levels.astype(np.float32) * _LEVELS
    changes -= (common * _LEVELS).astype(np.float32)[:, None]
    return changes


def _motion(levels: NDArray[np.int8], common: Float64, step: float, inside: Mask | None) -> Float64:
    """Return by how much the blocks change beyond the noise of the video, on average, (T - 1,).

    A change without neighbours just before or after is one of coding, not of something that moves;
    frames that are `step` seconds apart may be too few for that.
    """
    from scipy.ndimage import uniform_filter1d

    pieces = range(0, len(levels), _PIECE)
    spread = [
        np.quantile(np.abs(_changes(levels[part], common[part])), 0.9, axis=1)
        for part in (slice(at, at + _PIECE) for at in pieces)
    ]
    bar = np.clip(_TIMES * np.quantile(np.concatenate(spread), 0.25), _LEAST, _MOST)
    # slow light reaches the blocks of a coded frame at different times
    light = uniform_filter1d(np.abs(common) * _LEVELS, max(1, round(_LIGHT / step)))
    bars = (bar + _TIMES * light).astype(np.float32)[:, None]
    means = []
    for at in pieces:
        first = max(at - 1, 0)
        part = slice(first, at + _PIECE + 1)
        over = np.abs(_changes(levels[part], common[part])) - bars[part]
        if step <= _SHORTEST:
            near = _highest_near(over, inside)
            beside = np.full(over.shape, -1.0, np.float32)
            beside[1:] = near[:-1]
            beside[:-1] = np.maximum(beside[:-1], near[1:])
            over[beside <= 0] = 0
        means.append(over.clip(0).mean(axis=1)[at - first : at - first + _PIECE])
    motion = np.concatenate(means).astype(np.float64)
    usual = np.quantile(motion[motion > 0], 0.9) if motion.any() else 0.0
    faint = motion < max(_FAINT, _FAINTEST * usual)
    return np.where(faint, 0.0, motion) if faint.mean() >= _STILL else motion


def _highest_near(over: Float32, inside: Mask | None) -> Float32:
    """Return the highest value among each block (T, B) and those around it that are there."""
    from scipy.ndimage import maximum_filter

    inside = np.ones(_BLOCKS[::-1], bool) if inside is None else inside
    grid = np.full((len(over), *inside.shape), -np.inf, np.float32)
    grid[:, inside] = over
    near: Float32 = maximum_filter(grid, (1, 3, 3))[:, inside]
    return near


def _runs(motion: Float64, times: Float64, step: float) -> list[tuple[int, int]]:
    """Return the first change of each bout and the one after its last."""
    from scipy.ndimage import gaussian_filter1d

    still = motion == 0
    level, high = motion, 0.0
    if still.mean() < _STILL:
        level = gaussian_filter1d(motion, _SMOOTH / step, mode="nearest")
        high = _HIGH * float(np.quantile(level, _TOP))
    joined: list[tuple[int, int]] = []
    for first, end in _true_runs(level > _LOW / _HIGH * high):
        if level[first:end].max() < high:
            continue
        # ends are where changes end, not their average
        moving = first + np.flatnonzero(~still[first:end])
        if not len(moving):
            continue
        first, end = int(moving[0]), int(moving[-1]) + 1
        if joined and times[first] - times[joined[-1][1]] < max(_GAP, 1.01 * step):
            first = joined.pop()[0]
        joined.append((first, end))
    return [
        (first, end)
        for first, end in joined
        # one change alone may be a coded frame that is sharper than the one before
        if (step > _SHORTEST or times[end] - times[first] > _SHORTEST)
        and 1 - still[first:end].mean() >= _MOVING
    ]


def _true_runs(mask: Mask) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _period(changes: Float32, step: float) -> float | None:
    """Return the seconds after which (T, B) changes of a bout come again, None if they do not."""
    from scipy.ndimage import gaussian_filter1d

    lags = int(min(_PERIODS[1] / step, len(changes) / 2))
    least = max(int(_PERIODS[0] / step), 2)
    if lags < least + 2:
        return None
    blurred = gaussian_filter1d(changes, _BLUR / step, axis=0)
    unit = blurred / (np.linalg.norm(blurred, axis=1, keepdims=True) + 1e-3)
    alike = np.array([(unit[: len(unit) - lag] * unit[lag:]).sum(1).mean() for lag in range(lags)])
    middle = alike[1:-1]
    peaks = 1 + np.flatnonzero((middle >= alike[:-2]) & (middle >= alike[2:]))
    peaks = peaks[peaks >= least]
    if not len(peaks) or alike[peaks].max() < _RHYTHM:
        return None
    return float(peaks[alike[peaks] >= _PEAK * alike[peaks].max()][0] * step)
