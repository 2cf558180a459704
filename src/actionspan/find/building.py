"""An index of an archive: a file next to the features, by which a search takes seconds.

It holds the steps of all videos, and the means that lead to the few segments worth a look: over
units of a third of a second, of twice this, and so on, in 8 bits. A segment has 3 or 4.25 units, so
that a long one costs less than a short one. The product with the examples needs five numbers of a
unit. Its divisor, the whitened length of a description, is kept for each shrinkage. The
lattice's segments around the best places are then scored as without an index; the whitening is
by at most 100,000 segments of each length, drawn at random.

Steps have checksums that are compared as they are read. A damaged unit can only hide a segment.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64, UInt8
from actionspan.features.steps import rescale
from actionspan.features.transform import Moments
from actionspan.find.examples import (
    PARTS,
    SHRINKAGE,
    Footage,
    Likeness,
    describe,
)
from actionspan.jobs.progress import progress
from actionspan.storage.writing import create_h5

LEVELS = 12
_UNIT = 1 / 3  # second, of level 0
UNITS = (3.0, 4.25)  # in a segment
_NORM = 3.5  # units of the segments that norms are of
LENGTHS = np.outer(_UNIT * 2.0 ** np.arange(LEVELS), UNITS)  # seconds, ascending
CELLS = 4096  # described at once
_MOMENTS = 100_000  # segments of each length that the whitening is learned from
_APART = 0.05  # distance of them, as a share of their length
OCTAVE = 24  # codes of a factor of two of a norm
OUTSIDE = 255  # the code of a segment that is not in its video


def build(footage: Footage, path: Path, made_of: str) -> None:
    """Write the index of videos, of which one is in memory at a time."""
    names = list(footage.videos)
    duration = np.array([footage.videos[name].video.duration_seconds for name in names])
    first = _firsts([footage.steps(name) for name in names])
    finest = np.ceil(duration / _UNIT)
    firsts = [_firsts(np.ceil(finest / 2**level)) for level in range(LEVELS)]
    moments: list[Moments] = []
    with create_h5(path, made_of) as file:
        file["video"], file["duration"], file["first"], file["firsts"] = (
            names,
            duration,
            first,
            firsts,
        )
        # 1. steps, units, and the moments of segments
        for row, name in enumerate(progress(names, "index: steps", len(names))):
            steps, seconds = footage.read_sequence(name)
            if not moments:
                moments = [Moments((PARTS + 2) * steps.shape[1]) for _ in LENGTHS.flat]
                file.create_dataset("steps", (first[-1], steps.shape[1]), np.float32)
                for level, (*_, count) in enumerate(firsts):
                    file.create_dataset(f"units/{level}", (count, steps.shape[1]), np.int8)
                    file.create_dataset(f"largest/{level}", (count,), np.float32)
                    file.create_dataset(f"norms/{level}", (len(SHRINKAGE), count), np.uint8)
            file["steps"][first[row] : first[row + 1]] = steps
            middles: Float64 = (np.arange(len(steps), dtype=np.float64) + 0.5) * seconds
            mean = rescale(steps, middles, duration[row], int(finest[row]), "mean")
            for level, each in enumerate(firsts):
                own, largest = slice(each[row], each[row + 1]), np.abs(mean).max(axis=1)
                scaled = mean * (127 / np.maximum(largest, 1e-12))[:, None]
                file[f"units/{level}"][own] = np.rint(scaled).astype(np.int8)
                file[f"largest/{level}"][own] = largest
                even = np.pad(mean, ((0, len(mean) % 2), (0, 0)), "edge")
                mean = even.reshape(-1, 2, even.shape[1]).mean(axis=1)
            rng = np.random.default_rng(row)
            for length, of_length in zip(LENGTHS.ravel() / seconds, moments, strict=True):
                length = min(max(length, 1.0), len(steps))
                most = len(steps) / (_APART * length)
                count = max(1, round(min(most, _MOMENTS * duration[row] / duration.sum())))
                places = (np.arange(count) + rng.random(count)) / count  # evenly, but on no grid
                starts = places * (len(steps) - length)
                for described in _described(steps, np.stack([starts, starts + length], axis=1)):
                    of_length.add(described.astype(np.float32))
        file["mean"] = [each.mean for each in moments]
        file["covariance"] = np.stack([each.covariance for each in moments])
        # 2. the norms of segments
        for level, each in enumerate(firsts):
            longer = moments[level * len(UNITS) + 1]
            likeness = Likeness(longer.mean, longer.covariance)
            for row in progress(range(len(names)), f"index: level {level}", len(names)):
                steps = file["steps"][first[row] : first[row + 1]]
                unit = len(steps) / finest[row] * 2**level  # steps
                starts = np.arange(each[row + 1] - each[row]) * unit
                cells = np.stack([starts, starts + _NORM * unit], axis=1)
                codes = np.concatenate([_codes(likeness, one) for one in _described(steps, cells)])
                codes[cells[:, 1] > len(steps) + unit] = OUTSIDE
                file[f"norms/{level}"][:, each[row] : each[row + 1]] = codes.T


def _firsts(counts: Any) -> Int64:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _described(steps: Float32, cells: Float64) -> Iterator[Float64]:
    """Yield the descriptions of a video's segments (N, 2) of one length in order, in blocks."""
    for first in range(0, len(cells), CELLS):
        block = cells[first : first + CELLS]
        half = np.ptp(block[0]) / 2 + 1
        begin = max(0, int(block[0, 0] - half))
        yield describe(steps[begin : int(block[-1, 1] + half) + 1], block - begin)


def _codes(likeness: Likeness, described: Float64) -> NDArray[np.uint8]:
    """Return the lengths (N, S) of whitened descriptions by each shrinkage, as codes."""
    turned = (described - likeness.mean).astype(np.float32) @ likeness.vectors.astype(np.float32)
    weights = np.stack([likeness.scale(each) ** -2 for each in SHRINKAGE], axis=1)
    octaves = np.log2(np.maximum(np.square(turned) @ weights.astype(np.float32), 1e-6)) / 2
    coded: UInt8 = np.clip(np.rint((octaves + 1) * OCTAVE), 0, OUTSIDE - 1).astype(np.uint8)
    return coded
