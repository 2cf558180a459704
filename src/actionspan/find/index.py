"""A search by example in the index of an archive, which takes seconds.

The index is read around the best places only. Steps have checksums that are compared as they are
read. A damaged unit can only hide a segment.
"""

import itertools
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan import __version__
from actionspan.annotations.tables import Instance
from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError, JobError
from actionspan.find.building import CELLS, LENGTHS, LEVELS, OCTAVE, OUTSIDE, UNITS, build
from actionspan.find.examples import (
    LATTICE,
    PARTS,
    SAMPLE,
    SHRINKAGE,
    Footage,
    Likeness,
    Similar,
    describe,
    room_of,
    unmarked,
)
from actionspan.proposals.lattice import lattice_lengths
from actionspan.propose.results import source_of
from actionspan.review.footage import Encoded
from actionspan.storage.checksums import CheckedFile
from actionspan.storage.writing import digest, open_h5

_LIKE = (0.75, 1.35)  # of the shortest and longest example: lengths of places
_BLOCK = 8192  # units that are read at once
_HALO = 8  # units that a segment and its surroundings reach
_PLACES = 1500  # around which segments are scored
_NEAR = 0.4  # least tIoU with a place
_SIDE = 10  # random segments that are read at once
_ENDLESS = 10**9  # steps


def index_of(videos: Sequence[Encoded], path: Path) -> "Index":
    """Return the index of videos at `path`; make it if it is missing, damaged or of others."""
    sources = {one.video.video_id: source_of(one.shard) for one in videos}
    lengths = [one.video.duration_seconds for one in videos]
    made_of = digest(__version__, sources, lengths)
    try:
        index = Index(path)
        if index.made_of == made_of:
            return index
        reason = "of other features"
    except (JobError, InputError) as error:
        reason = str(error).removeprefix(f"{path}: ").partition(";")[0]
    print(f"{path}: {reason}; it is made, once", file=sys.stderr)
    build(Footage(videos), path, made_of)
    return Index(path)


_INVERSE = np.append(2.0 ** (1 - np.arange(OUTSIDE) / OCTAVE), 0).astype(np.float32)


class Index:
    """An index, open for searches.

    Raises:
        JobError: It is missing, damaged or none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_h5(path) as file:
            self.made_of = str(file.attrs["digest"])
            self.names = file["video"].asstr()[:].tolist()
            self.duration, self.first = file["duration"][:], file["first"][:]
            self._firsts: Int64 = file["firsts"][:]
            keys = ["steps"] + [
                f"{kind}/{n}" for n in range(LEVELS) for kind in ("units", "largest", "norms")
            ]
            self._at = {key: file[key].id.get_offset() for key in keys}
            self._width = file["steps"].shape[1]
            self._file = CheckedFile(path)
        self._seconds = self.duration / np.diff(self.first)  # of a step
        self._unit = self.duration / np.diff(self._firsts[0])  # seconds of the finest

    def find_like(
        self, examples: Mapping[str, Sequence[Instance]], places: int = _PLACES
    ) -> dict[str, Similar]:
        """Return how like the examples the segments around the best places are, by video."""
        room = room_of(examples)
        likeness = self._likeness(examples, room)
        best = self._best(likeness, room_of(examples, _LIKE), places)
        rows, cells = self._cells(best, room)
        scores = np.zeros(len(rows))
        for first in range(0, len(rows), CELLS):
            block = slice(first, first + CELLS)
            scores[block] = likeness(self._describe(rows[block], cells[block]))
        segments, found = cells * self._seconds[rows, None], {}
        for row in np.unique(rows):
            own, name = slice(*np.searchsorted(rows, [row, row + 1])), self.names[row]
            new = unmarked(segments[own], examples.get(name, ()))
            found[name] = Similar(segments[own][new], scores[own][new])
        return found

    def _likeness(
        self, examples: Mapping[str, Sequence[Instance]], room: tuple[float, float]
    ) -> Likeness:
        """Learn the likeness of segments with lengths in the room, in seconds."""
        # 1. moments: of the lattice's lengths, between the moments of the two nearest lengths
        step = float(np.median(self._seconds))
        given = lattice_lengths(_ENDLESS, room[0] / step, room[1] / step, LATTICE)
        lengths = np.array([length for length, _ in given]) * step
        known = np.arange(LENGTHS.size)
        place = np.interp(np.log(lengths), np.log(LENGTHS.ravel()), known)[:, None]
        shares = (np.maximum(1 - np.abs(place - known), 0) / lengths[:, None]).sum(axis=0)
        used = np.flatnonzero(shares)
        shares = shares[used] / shares.sum()
        with open_h5(self.path) as file:
            means, covariances = file["mean"][used], file["covariance"][used]
        mean = shares @ means
        between = (means - mean).T * shares @ (means - mean)
        likeness = Likeness(mean, np.tensordot(shares, covariances, 1) + between)
        # 2. the examples among random segments
        marks = [
            (self.names.index(name), one.start, one.end)
            for name, own in examples.items()
            for one in own
        ]
        rows = np.array([row for row, *_ in marks])
        cells = np.array([each for _, *each in marks]) / self._seconds[rows, None]
        rng = np.random.default_rng(0)
        count = SAMPLE if len(marks) > 1 else 1  # of a single example nothing is chosen by them
        some = rng.choice(
            len(self.names), -(-count // _SIDE), p=self.duration / self.duration.sum()
        )
        others = np.repeat(some, _SIDE)[:count]
        wide = rng.choice(lengths, count, p=(1 / lengths) / (1 / lengths).sum())
        steps = np.diff(self.first)[others]
        wide = np.minimum(wide / self._seconds[others], steps)
        share = np.repeat(rng.random(len(some)), _SIDE)[:count]  # close by: reading takes the time
        near = share * steps + rng.uniform(0, _SIDE, count) * wide
        starts = np.where(near <= steps - wide, near, rng.uniform(0, steps - wide))
        sample = np.stack([starts, starts + wide], axis=1)
        likeness.fit(self._describe(rows, cells), self._describe(others, sample))
        return likeness

    def _best(self, likeness: Likeness, room: tuple[float, float], most: int) -> Float64:
        """Return the best places (N, 4): score, row of the video, start and length in seconds."""
        inside = (room[0] <= LENGTHS) & (room[1] >= LENGTHS)
        inside.flat[np.abs(np.log(LENGTHS / np.sqrt(room[0] * room[1]))).argmin()] = True
        best, bar = np.zeros((0, 4)), 0.0
        for level in np.flatnonzero(inside.any(axis=1)).tolist():
            firsts, lengths = self._firsts[level], np.array(UNITS)[inside[level]]
            for begin, scores in self._scored(level, lengths, likeness):
                highest = scores.max(axis=0)
                at = np.flatnonzero(highest > bar)
                row = np.searchsorted(firsts, begin + at, side="right") - 1
                unit = self._unit[row] * 2**level
                length = lengths[scores[:, at].argmax(axis=0)] * unit
                found = [highest[at], row, (begin + at - firsts[row]) * unit, length]
                best = np.concatenate([best, np.stack(found, axis=1)])
                if len(best) > most:
                    best = best[np.argpartition(-best[:, 0], most - 1)[:most]]
                    bar = best[:, 0].min()
        return best

    def _scored(
        self, level: int, lengths: Float64, likeness: Likeness
    ) -> Iterator[tuple[int, Float32]]:
        """Yield the first unit of each block, and scores (L, n) of segments of L lengths there."""
        target = likeness.target / max(float(np.linalg.norm(likeness.target)), 1e-12)
        weights = (likeness.vectors / likeness.scale(likeness.shrinkage)) @ target
        offset = np.float32(weights @ likeness.mean)
        weights = weights.reshape(PARTS + 2, -1).astype(np.float32)
        count, width = int(self._firsts[level, -1]), weights.shape[1]
        shrinkage = SHRINKAGE.index(likeness.shrinkage)
        for begin in range(0, count, _BLOCK):
            # 1. the block and its surroundings
            low, high = max(0, begin - _HALO), min(count, begin + _BLOCK + _HALO)
            size = high - low
            units = self._read(f"units/{level}", np.int8, low * width, (size, width))
            largest = self._read(f"largest/{level}", np.float32, low, (size,))
            codes = self._read(f"norms/{level}", np.uint8, shrinkage * count + low, (size,))
            # 2. its products and inverse norms; beyond the archive both are 0
            inside = slice(low - begin + _HALO, high - begin + _HALO)
            products = np.zeros((len(weights), _BLOCK + 2 * _HALO), np.float32)
            np.multiply(
                (units.astype(np.float32) @ weights.T).T, largest / 127, products[:, inside]
            )
            inverse = np.zeros(_BLOCK + 2 * _HALO, np.float32)
            inverse[inside] = _INVERSE[codes]
            # 3. segments
            here = slice(_HALO, _HALO + min(_BLOCK, count - begin))
            scores = np.stack([_sums(products, length) - offset for length in lengths])
            scores = (scores * inverse)[:, here]
            yield begin, scores

    def _read(self, key: str, kind: Any, first: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a part of a dataset, unchecked; unlike a map it stays in memory no longer."""
        found = np.empty(shape, kind)
        at = self._at[key] + first * found.itemsize
        view = memoryview(found)  # type: ignore[arg-type]
        if os.preadv(self._file.descriptor, [view], at) < found.nbytes:
            raise JobError(f"{self.path}: shorter than it was; delete it and run again")
        return found

    def _cells(self, places: Float64, room: tuple[float, float]) -> tuple[Int64, Float64]:
        """Return the rows of videos and the lattice's cells (N, 2), in steps, around places."""
        # 1. each length of the lattice at each place
        given = []
        for _, row, start, length in places.tolist():
            count_of = int(self.first[int(row) + 1] - self.first[int(row)])
            second = 1 / self._seconds[int(row)]
            of_lattice = lattice_lengths(count_of, room[0] * second, room[1] * second, LATTICE)
            place = (row, count_of, start * second, length * second)
            given += [(*place, *one, number) for number, one in enumerate(of_lattice)]
        table = np.array(given).reshape(-1, 7)
        _, steps, start, wide, length, count, _ = table.T
        # 2. the cells that share enough with the place
        shared = _NEAR * (length + wide) / (1 + _NEAR)
        stride = (steps - length) / np.maximum(count - 1, 1)
        distance = np.maximum(stride, 1e-12)
        first = np.maximum(np.ceil((start + shared - length) / distance), 0)
        last = np.minimum(np.floor((start + wide - shared) / distance), count - 1)
        many = np.where(np.minimum(length, wide) < shared, 0, np.maximum(last - first + 1, 0))
        # 3. each once
        each, after = _ranges(first, many)
        chosen = np.unique(
            np.column_stack([table[each][:, [0, 6]], after]), axis=0, return_index=True
        )
        each, after = each[chosen[1]], after[chosen[1]]
        starts = np.where(after == count[each] - 1, (steps - length)[each], after * stride[each])
        cells = np.stack([starts, starts + length[each]], axis=1)
        return table[each, 0].astype(np.int64), cells

    def _describe(self, rows: Int64, cells: Float64) -> Float64:
        """Return the descriptions (N, D) of cells (N, 2), in steps, of videos."""
        half = np.ptp(cells, axis=1) / 2 + 1
        begin = self.first[rows] + np.maximum(cells[:, 0] - half, 0).astype(np.int64)
        end = np.minimum(
            self.first[rows] + (cells[:, 1] + half).astype(np.int64), self.first[rows + 1]
        )
        needed = np.unique(_ranges(begin, end - begin)[1])
        here = np.searchsorted(needed, begin)
        moved = cells + (here - begin + self.first[rows])[:, None]
        # each run of steps is read at once, and compared with its checksums
        steps = np.empty((len(needed), self._width), np.float32)
        runs = np.flatnonzero(np.diff(needed, prepend=-2, append=_ENDLESS**2) > 1)
        for first, last in itertools.pairwise(runs):
            place = self._at["steps"] + needed[first] * steps[0].nbytes
            part = memoryview(steps[first:last])  # type: ignore[arg-type]
            self._file.read_into(part.cast("B"), int(place))
        return describe(steps, moved, (here * 1.0, here + (end - begin) * 1.0))


def _ranges(first: NDArray[Any], many: NDArray[Any]) -> tuple[Int64, Int64]:
    """Return, of ranges of `many` numbers from `first` on, the row and the number of each."""
    counts = many.astype(np.int64)
    each = np.repeat(np.arange(len(counts)), counts)
    return each, np.arange(len(each)) + (first.astype(np.int64) - np.cumsum(counts) + counts)[each]


def _sums(products: Float32, length: float) -> Float32:
    """Return the sums (n,) of segments of `length` units, by the products (parts, n) of units."""
    edges = [-length / 2, *(length * each / PARTS for each in range(PARTS + 1)), 1.5 * length]
    total = np.zeros(products.shape[1], np.float32)
    for of_part, (start, end) in zip(products, itertools.pairwise(edges), strict=True):
        for unit in range(math.floor(start), math.ceil(end)):
            share = (min(unit + 1, end) - max(unit, start)) / (end - start)
            total[_HALO:-_HALO] += np.float32(share) * of_part[_HALO + unit : unit - _HALO or None]
    return total
