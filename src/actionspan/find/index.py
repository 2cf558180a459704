"""An index of an archive: a file beside the features, by which a search by example takes a second.

It holds the steps of all videos as they are searched without it, and what finds the few segments
worth a look: means of the steps over units of a quarter of a second, of twice this, and so on, in 8
bits. A segment has 6, 8 or 10 units, so that a long one costs no more than a short one. The product
with the whitened mean of the examples needs five numbers a unit; what it is divided by, the whitened
length of the segment's description, is kept for each shrinkage. The lattice's segments around the
best places are then described and scored as without an index. The whitening is that of a sample.

Steps have checksums that are compared as they are read. A damaged unit can only hide a segment.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actionspan import __version__
from actionspan.annotations.tables import Instance
from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError, JobError
from actionspan.features.transform import Moments
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
from actionspan.jobs.progress import progress
from actionspan.proposals.lattice import lattice_lengths
from actionspan.propose.results import source_of
from actionspan.review.footage import Encoded
from actionspan.storage.checksums import map_checked
from actionspan.storage.writing import create_h5, digest, open_h5

if TYPE_CHECKING:
    import h5py

_FORMAT = 1
_UNIT = 0.25  # seconds, of level 0; that of each next one is twice as long
_LEVELS = 11
_LENGTHS = (6, 8, 10)  # units of a segment
_SHORT = (2, 3, 4)  # at level 0 too
_BLOCK = 16384  # units that are read at once
_HALO = 16  # units that the longest segment reaches beyond its start
_TOGETHER = 4  # units of which the best segment counts
_CELLS = 4096  # described at once
_MOMENTS = 100_000  # segments of each length that the whitening is learned from
_DRAWN = 1000  # of them that examples are ranked among
_OCTAVE = 24  # codes of a factor of two of a length
_OUTSIDE = 255  # the code of a segment that is not in its video
_PLACES = 1500  # around which segments are described
_ENDLESS = 10**9  # steps
_NEAR = 0.4  # least tIoU with a place

Raw = NDArray[Any]


def _unit(level: int) -> float:
    """Return the seconds of a unit."""
    return _UNIT * 2.0**level


class _Band(NamedTuple):
    """Lengths that are found in the units of a level, with norms of the middle one."""

    level: int
    units: tuple[int, ...]

    @property
    def unit(self) -> float:
        return _unit(self.level)

    @property
    def seconds(self) -> list[float]:
        return [self.unit * units for units in self.units]


_BANDS = (_Band(0, _SHORT), *(_Band(level, _LENGTHS) for level in range(_LEVELS)))
_LADDER = np.array([seconds for band in _BANDS for seconds in band.seconds])  # ascending


def index_of(videos: Sequence[Encoded], path: Path) -> "Index":
    """Return the index of videos at `path`; make it if it is missing, damaged or of others."""
    sources = {one.video.video_id: source_of(one.shard) for one in videos}
    lengths = [one.video.duration_seconds for one in videos]
    made_of = digest(__version__, _FORMAT, sources, lengths)
    try:
        found = Index(path)
        if found.made_of == made_of:
            return found
        reason = "of other features"
    except (JobError, InputError) as error:
        reason = str(error).removeprefix(f"{path}: ").partition(";")[0]
    print(f"{path}: {reason}; it is made, once", file=sys.stderr)
    build(Footage(videos), path, made_of)
    return Index(path)


def build(footage: Footage, path: Path, made_of: str) -> None:
    """Write the index of videos, of which one is in memory at a time."""
    names = list(footage.videos)
    duration = np.array([footage.videos[name].video.duration_seconds for name in names])
    counts = [footage.steps(name) for name in names]
    with create_h5(path, made_of) as file:
        # 1. which rows are of which video
        file["video"], file["duration"] = names, duration
        file["first"] = _firsts(counts)
        for level in range(_LEVELS):
            file[f"units/{level}/first"] = _firsts(np.ceil(duration / _unit(level)))
        # 2. steps, units, and the moments of segments
        moments: dict[int, Moments] = {}
        drawn: dict[int, list[Float32]] = {}
        for row, name in enumerate(progress(names, "index: steps", len(names))):
            steps, seconds = footage.read_sequence(name)
            if not row:
                _make_room(file, steps.shape[1], sum(counts))
            file["steps"][_rows(file["first"], row)] = steps
            for level in range(_LEVELS):
                place = _rows(file[f"units/{level}/first"], row)
                mean, largest = _units(steps, seconds, _unit(level), place.stop - place.start)
                file[f"units/{level}/mean"][place] = mean
                file[f"units/{level}/largest"][place] = largest
            for rung, cells in _sampled(len(steps), seconds, duration[row] / duration.sum(), row):
                for described in _described(steps, cells):
                    moments.setdefault(rung, Moments(described.shape[1])).add(described)
                    part = described[:: _drawn_every(duration.sum(), rung)].astype(np.float32)
                    drawn.setdefault(rung, []).append(part)
        rungs = sorted(moments)
        file["rungs"] = rungs
        file["mean"] = np.stack([moments[rung].mean for rung in rungs])
        file["covariance"] = np.stack([moments[rung].covariance for rung in rungs])
        for rung in rungs:
            file[f"drawn/{rung}"] = np.concatenate(drawn[rung])
        # 3. norms
        for number, band in enumerate(_BANDS):
            rung = 3 * number + 1
            if rung not in moments:
                continue
            likeness = Likeness(moments[rung].mean, moments[rung].covariance)
            for row in progress(range(len(names)), f"index: {band.seconds[1]:g} s", len(names)):
                steps = file["steps"][_rows(file["first"], row)]
                place = _rows(file[f"units/{band.level}/first"], row)
                unit = band.unit * len(steps) / duration[row]  # steps
                starts = np.arange(place.stop - place.start) * unit
                cells = np.stack([starts, starts + unit * band.units[1]], axis=1)
                codes = np.concatenate(
                    [_codes(likeness, part) for part in _described(steps, cells)]
                )
                codes[cells[:, 1] > len(steps) + unit] = _OUTSIDE
                file[f"norms/{number}"][:, place] = codes.T


def _make_room(file: "h5py.File", width: int, steps: int) -> None:
    """Make the datasets, contiguous, so that they can be mapped."""
    file.create_dataset("steps", (steps, width), np.float32)
    for level in range(_LEVELS):
        units = int(file[f"units/{level}/first"][-1])
        file.create_dataset(f"units/{level}/mean", (units, width), np.int8)
        file.create_dataset(f"units/{level}/largest", (units,), np.float32)
    for number, band in enumerate(_BANDS):
        units = int(file[f"units/{band.level}/first"][-1])
        norms = (len(SHRINKAGE), units)
        file.create_dataset(f"norms/{number}", norms, np.uint8, fillvalue=_OUTSIDE)


def _firsts(counts: Any) -> Int64:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _rows(firsts: Raw, video: int) -> slice:
    return slice(int(firsts[video]), int(firsts[video + 1]))


def _units(steps: Float32, seconds: float, unit: float, count: int) -> tuple[Raw, Float32]:
    """Return the means (N, D) of steps over units in 8 bits, and the largest of each (N,)."""
    total = np.cumsum(steps, axis=0, dtype=np.float64)
    sums = np.concatenate([np.zeros((1, steps.shape[1])), total])
    edges = np.minimum(np.arange(count + 1) * unit / seconds, len(steps))
    whole = np.minimum(edges.astype(np.int64), len(steps) - 1)
    below = sums[whole] + (edges - whole)[:, None] * steps[whole]
    means = np.diff(below, axis=0) / np.maximum(np.diff(edges), 1e-6)[:, None]
    largest = np.abs(means).max(axis=1).astype(np.float32)
    return np.rint(means * (127 / np.maximum(largest, 1e-12))[:, None]).astype(np.int8), largest


def _sampled(steps: int, seconds: float, share: float, seed: int) -> Iterator[tuple[int, Float64]]:
    """Yield the numbers of the ladder's lengths that a video has, and random segments of each."""
    for rung, length in enumerate(_LADDER / seconds):
        room = steps - length
        if room >= 0 and length >= 1:
            rng = np.random.default_rng([seed, rung])
            most = min(_MOMENTS * share, room / (LATTICE.stride * length))
            starts = rng.uniform(0, room, max(1, round(most)))
            yield rung, np.stack([starts, starts + length], axis=1)


def _drawn_every(duration: float, rung: int) -> int:
    cells = min(_MOMENTS, duration / (LATTICE.stride * _LADDER[rung]))
    return max(1, int(cells / _DRAWN))


def _described(steps: Float32, cells: Float64) -> Iterator[Float64]:
    """Yield the descriptions of a video's segments (N, 2), in blocks."""
    cells = cells[np.argsort(cells[:, 0], kind="stable")]
    for first in range(0, len(cells), _CELLS):
        block = cells[first : first + _CELLS]
        half = np.diff(block, axis=1).max() / 2 + 1
        begin, end = max(0, int(block.min() - half)), int(block.max() + half) + 1
        yield describe(steps[begin:end], block - begin)


def _codes(likeness: Likeness, described: Float64) -> Raw:
    """Return the lengths (N, S) of whitened descriptions by each shrinkage, as codes."""
    turned = (described - likeness.mean).astype(np.float32) @ likeness.vectors.astype(np.float32)
    weights = np.stack([likeness.scale(each) ** -2 for each in SHRINKAGE], axis=1)
    octaves = np.log2(np.maximum(np.square(turned) @ weights.astype(np.float32), 1e-6)) / 2
    return np.clip(np.rint((octaves + 1) * _OCTAVE), 0, _OUTSIDE - 1).astype(np.uint8)


_INVERSE = np.append(2.0 ** (1 - np.arange(_OUTSIDE) / _OCTAVE), 0).astype(np.float32)


class Index:
    """An index, open for searches.

    Raises:
        JobError: It is missing or damaged.
        InputError: It is none.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.places = path, _PLACES
        with open_h5(path) as file:
            self.made_of = str(file.attrs["digest"])
            self.names = file["video"].asstr()[:].tolist()
            self.first, self.duration, self.rungs = (
                file[key][:] for key in ("first", "duration", "rungs")
            )
            self._firsts = [file[f"units/{level}/first"][:] for level in range(_LEVELS)]
            steps = file["steps"]
            self._at: dict[str, int] = {}
            for key in ("units", "norms"):
                file[key].visititems(lambda name, one, key=key: self._note(f"{key}/{name}", one))
            self.steps = map_checked(path, np.float32, steps.id.get_offset(), steps.shape)
        self._number = {name: row for row, name in enumerate(self.names)}

    def _note(self, key: str, one: Any) -> None:
        if hasattr(one, "shape"):
            self._at[key] = one.id.get_offset()

    def find_like(
        self, examples: Mapping[str, Sequence[Instance]], places: int | None = None
    ) -> dict[str, Similar]:
        """Return how like the examples segments near the best `places` are, by video."""
        room = room_of(examples)
        # 1. the likeness
        mean, covariance, sample = self._learned(room)
        likeness = Likeness(mean, covariance)
        marks = [(self._number[name], one) for name, own in examples.items() for one in own]
        rows = np.array([row for row, _ in marks])
        cells = np.array([(one.start, one.end) for _, one in marks]) / self._seconds(rows)[:, None]
        likeness.fit(self._describe(rows, cells), sample)
        # 2. segments near the best places
        rows, cells = self._cells(self._best(likeness, room, places or self.places), room)
        # 3. their exact scores
        blocks = range(0, len(rows), _CELLS)
        scores = [
            likeness(self._describe(rows[each : each + _CELLS], cells[each : each + _CELLS]))
            for each in blocks
        ]
        return self._by_video(rows, cells, np.concatenate([*scores, np.zeros(0)]), examples)

    def _seconds(self, rows: Int64) -> Float64:
        """Return the seconds of a step of videos."""
        found: Float64 = self.duration[rows] / (self.first[rows + 1] - self.first[rows])
        return found

    def _learned(self, room: tuple[float, float]) -> tuple[Float64, Float64, Float32]:
        """Return the mean and covariance of segments of these lengths, and some of them."""
        # 1. the lengths of the lattice between those of the ladder, by the number of their cells
        step = float(np.median(self._seconds(np.arange(len(self.names)))))
        given = lattice_lengths(_ENDLESS, room[0] / step, room[1] / step, LATTICE)
        lengths = np.array([length for length, _ in given]) * step
        rungs = np.arange(len(self.rungs))
        place = np.interp(np.log(lengths), np.log(_LADDER[self.rungs]), rungs)
        weights = np.maximum(1 - np.abs(place[:, None] - rungs), 0) / lengths[:, None]
        shares = weights.sum(axis=0) / weights.sum()
        # 2. their moments
        used = np.flatnonzero(shares)
        with open_h5(self.path) as file:
            means, covariances = file["mean"][used], file["covariance"][used]
            drawn = [file[f"drawn/{rung}"][:] for rung in self.rungs[used]]
        mean = shares[used] @ means
        apart = means - mean
        covariance = np.tensordot(shares[used], covariances, 1)
        covariance += (apart * shares[used, None]).T @ apart
        wanted = np.maximum(1, np.round(SAMPLE * shares[used])).astype(int)
        parts = [
            each[:: max(1, len(each) // most)] for each, most in zip(drawn, wanted, strict=True)
        ]
        return mean, covariance, np.concatenate(parts)

    def _best(self, likeness: Likeness, room: tuple[float, float], most: int) -> Float64:
        """Return the best places (N, 4): score, row of the video, start and length in seconds."""
        target = likeness.target / max(float(np.linalg.norm(likeness.target)), 1e-12)
        weights = (likeness.vectors / likeness.scale(likeness.shrinkage)) @ target
        inside = (room[0] <= _LADDER) & (room[1] >= _LADDER)
        if not inside.any():
            inside[np.abs(np.log(_LADDER / room[0])).argmin()] = True
        best, bar = np.zeros((0, 4)), 0.0
        for number, band in enumerate(_BANDS):
            units = [
                each for each, used in zip(band.units, inside[3 * number :], strict=False) if used
            ]
            for begin, scores in self._scored(number, units, likeness, weights):
                chosen = scores.max(axis=0)
                cell = chosen[: len(chosen) // _TOGETHER * _TOGETHER].reshape(-1, _TOGETHER)
                at = np.arange(len(cell)) * _TOGETHER + cell.argmax(axis=1)
                at = at[chosen[at] > bar]
                unit = begin + at
                firsts = self._firsts[band.level]
                row = np.searchsorted(firsts, unit, side="right") - 1
                length = np.array(units)[scores[:, at].argmax(axis=0)]
                found = [chosen[at], row, (unit - firsts[row]) * band.unit, length * band.unit]
                best = np.concatenate([best, np.stack(found, axis=1)])
                if len(best) > 4 * most:
                    best = best[np.argpartition(-best[:, 0], most)[:most]]
                    bar = best[:, 0].min()
        return best[np.argsort(-best[:, 0], kind="stable")[:most]]

    def _scored(
        self, number: int, units: Sequence[int], likeness: Likeness, weights: Float64
    ) -> Iterator[tuple[int, Float32]]:
        """Yield the first unit of each block, and scores (L, n) of segments of L lengths from it."""
        band = _BANDS[number]
        key, count = f"units/{band.level}", int(self._firsts[band.level][-1])
        width = self.steps.shape[1]
        parts = weights.reshape(PARTS + 2, width).T.astype(np.float32)
        offset = np.float32(weights @ likeness.mean)
        shrinkage = SHRINKAGE.index(likeness.shrinkage)
        for begin in range(0, count, _BLOCK) if units else ():
            end = min(count, begin + _BLOCK)
            low, high = max(0, begin - _HALO), min(count, end + _HALO)
            around = (low - begin + _HALO, end + _HALO - high)  # beyond the archive
            mean = self._read(f"{key}/mean", np.int8, low * width, (high - low, width))
            largest = self._read(f"{key}/largest", np.float32, low, (high - low,))
            codes = self._read(f"norms/{number}", np.uint8, shrinkage * count + low, (high - low,))
            inverse = np.pad(_INVERSE[codes], around)
            curves = np.pad((mean.astype(np.float32) @ parts).T * (largest / 127), ((0, 0), around))
            sums = np.pad(np.cumsum(curves, axis=1), ((0, 0), (1, 0)))
            scores = np.empty((len(units), end - begin), np.float32)
            for row, length in enumerate(units):
                first = _HALO + (length - band.units[1]) // 2
                scores[row] = _product(sums, length, end - begin) - offset
                scores[row] *= inverse[first : first + end - begin]
            yield begin, scores

    def _read(self, key: str, kind: Any, first: int, shape: tuple[int, ...]) -> Raw:
        """Return a part of a dataset, which no map keeps in memory, unchecked."""
        found = np.empty(shape, kind)
        file, at = self.steps.file, self._at[key] + first * found.itemsize
        if os.preadv(file.descriptor, [found], at) < found.nbytes:
            raise JobError(f"{self.path}: shorter than it was; delete it and run again")
        return found

    def _cells(self, places: Float64, room: tuple[float, float]) -> tuple[Int64, Float64]:
        """Return the lattice's cells (N, 2) around places, in steps, and the row of their video."""
        # 1. each length of the lattice at each place
        rows = places[:, 1].astype(np.int64)
        seconds = self._seconds(rows)
        steps = (self.first[rows + 1] - self.first[rows]).astype(np.float64)
        given = [
            (place, number, *each)
            for place in range(len(places))
            for number, each in enumerate(
                lattice_lengths(
                    int(steps[place]), room[0] / seconds[place], room[1] / seconds[place], LATTICE
                )
            )
        ]
        place, number, length, count = np.array(given).reshape(-1, 4).T
        at = place.astype(np.int64)
        start, wide = places[at, 2] / seconds[at], places[at, 3] / seconds[at]
        # 2. the cells that share enough with the place
        shared = _NEAR * (length + wide) / (1 + _NEAR)
        apart = (steps[at] - length) / np.maximum(count - 1, 1)
        apart_or_one = np.where(apart > 0, apart, 1.0)
        first = np.maximum(np.ceil((start + shared - length) / apart_or_one), 0)
        last = np.minimum(np.floor((start + wide - shared) / apart_or_one), count - 1)
        last = np.where(np.minimum(length, wide) < shared, -1, last)
        many = np.maximum(last - first + 1, 0).astype(np.int64)
        each = np.repeat(np.arange(len(many)), many)
        index = first[each] + np.arange(len(each)) - np.repeat(np.cumsum(many) - many, many)
        # 3. each once
        key = (
            (rows[at[each]] << 38) | (number[each].astype(np.int64) << 32) | index.astype(np.int64)
        )
        _, kept = np.unique(key, return_index=True)
        each, index = each[kept], index[kept]
        starts = np.where(
            index == count[each] - 1, steps[at[each]] - length[each], index * apart[each]
        )
        return rows[at[each]], np.stack([starts, starts + length[each]], axis=1)

    def _describe(self, rows: Int64, cells: Float64) -> Float64:
        """Return the descriptions (N, D) of cells (N, 2), in steps, of the videos of these rows."""
        # 1. the steps that they depend on
        half = np.diff(cells, axis=1)[:, 0] / 2 + 1
        begin = np.maximum(cells[:, 0] - half, 0).astype(np.int64) + self.first[rows]
        end = np.minimum(
            (cells[:, 1] + half).astype(np.int64) + self.first[rows], self.first[rows + 1]
        )
        many = end - begin
        every = (
            np.repeat(begin, many) + np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        )
        needed = np.unique(every)
        # 2. their places among these
        here = np.searchsorted(needed, begin)
        moved = cells + (here - begin + self.first[rows])[:, None]
        inside = here.astype(np.float64), (here + many).astype(np.float64)
        return describe(self.steps[needed], moved, inside)

    def _by_video(
        self,
        rows: Int64,
        cells: Float64,
        scores: Float64,
        examples: Mapping[str, Sequence[Instance]],
    ) -> dict[str, Similar]:
        segments = cells * self._seconds(rows)[:, None]
        found = {}
        for row in np.unique(rows).tolist():
            own, name = slice(*np.searchsorted(rows, [row, row + 1])), self.names[row]
            new = unmarked(segments[own], examples.get(name, ()))
            found[name] = Similar(segments[own][new], scores[own][new])
        return found


def _product(sums: Float32, length: int, count: int) -> Float32:
    """Return the products (n,) of the weights with segments of so many units, by running sums."""

    def below(part: int, units: float) -> Any:
        first, share = _HALO + int(np.floor(units)), np.float32(units % 1)
        here = sums[part, first : first + count]
        return (
            here if not share else here + share * (sums[part, first + 1 : first + 1 + count] - here)
        )

    edges = [-length / 2, *(length * each / PARTS for each in range(PARTS + 1)), 1.5 * length]
    total = np.zeros(count, np.float32)
    for part, (start, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        total += (below(part, end) - below(part, start)) / np.float32(end - start)
    return total
