"""Cells and proposals of a stream as they are complete: the causal `intensity` and `selection`.

A cell is complete when the curves are known as far behind its end as its density sees. Every cell
is given once: the cells of the lattice, and pairs of a peak of the start curve with one of the end
curve, which the next step confirms. Cells of one length are the same share of it apart, but never
more than a step: a better one that ends soon after is then seen in time. Where this makes them
denser than in the whole video's lattice, their density falls by the same factor.

A cell is a candidate until it is due; then it is emitted or dropped. Its score is the recall that
it is expected to add to the emitted proposals and to the better candidates that still wait. An
emitted proposal never changes.
"""

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, pairwise_tiou
from actionspan.proposals.intensity import DensityModel
from actionspan.proposals.lattice import peaks_inside
from actionspan.proposals.selection import recall_reached
from actionspan.temporal.labels import END, KINDS, START
from actionspan.temporal.prediction import Resumable

APART = 1.0  # steps between two cells of a length, at most
_STARTS = 16  # highest start peaks that an end peak is paired with
_BEFORE = 0.5  # of its length: the curves before it that a cell sees
_MARGIN = 4  # steps kept beyond the reach of a cell


class OnlineCells(Resumable):
    """Takes the curves step by step; gives the cells that became complete and their density.

    Cells wait for the density's `ahead` steps behind their end. Of a training video's `part` it is
    the density by the member that left the part out.
    """

    changing = ("steps", "_given", "_curves", "_starts", "_ends")

    def __init__(self, model: DensityModel, part: int | None = None) -> None:
        self.model = model
        self.steps = 0  # seen of the curves
        self._part = part
        self._curves = np.zeros((0, KINDS), np.float32)  # the last of them
        self._given = 0.0  # cells that end up to here were given
        self._starts = np.zeros((0, 2))  # places and heights of start peaks
        self._ends = np.zeros((0, 2))  # of end peaks that have not been paired

    def longest(self, seconds: float) -> float:
        """Return the length of the longest cell in steps of `seconds`."""
        return max(self.model.lengths.longest / seconds, 1.0)

    def add(self, probabilities: Float32, seconds: float) -> tuple[Float64, Float64]:
        """Return the cells (N, 2) in steps, and their density (N,), that the next step completes.

        Its probabilities are (3,); a step is `seconds` long.
        """
        self._curves = np.concatenate([self._curves, probabilities[None]])
        self.steps += 1
        if self.steps > 1:
            self._find_peaks(self.steps - 2, self._last(3))
        ahead = 0.0 if self.model.ahead is None else self.model.ahead
        cells = self._complete(self.steps - ahead - 0.5, seconds)
        kept = int(np.ceil((1 + _BEFORE) * self.longest(seconds) + ahead)) + _MARGIN
        self._curves = self._curves[-kept:]
        return cells

    def finish(self, seconds: float) -> tuple[Float64, Float64]:
        """Return the remaining cells and their density at the end of the stream."""
        if not self.steps:
            return np.zeros((0, 2)), np.zeros(0)
        beyond = np.zeros((1, KINDS), np.float32)
        self._find_peaks(self.steps - 1, np.concatenate([self._last(2), beyond]))
        return self._complete(float(self.steps), seconds, whole=True)

    def _last(self, count: int) -> Float32:
        """Return the last curves (count, 3), 0 before the first step."""
        missing = np.zeros((max(count - len(self._curves), 0), KINDS), np.float32)
        return np.concatenate([missing, self._curves[-count:]])

    def _find_peaks(self, step: int, curves: Float32) -> None:
        """Note a peak at a step, of the curves (3, 3) before, at and after it."""
        for kind, name in ((START, "_starts"), (END, "_ends")):
            found = peaks_inside(curves[:, kind].astype(np.float64), step)
            setattr(self, name, np.append(getattr(self, name), np.stack(found, axis=1), axis=0))

    def _complete(
        self, until: float, seconds: float, whole: bool = False
    ) -> tuple[Float64, Float64]:
        regular, shares = self._lattice(until, seconds, whole)
        pairs = self._pairs(until, seconds)
        self._given = max(until, self._given)
        cells = np.concatenate([regular, pairs])
        if not len(cells):
            return cells, np.zeros(0)
        paired = np.arange(len(cells)) >= len(regular)
        first = self.steps - len(self._curves)
        features = self.model.features(self._curves, cells - first, paired, seconds)
        density = self.model.expected(features, self._part)
        density[: len(regular)] *= shares
        return cells, density

    def _lattice(self, until: float, seconds: float, whole: bool) -> tuple[Float64, Float64]:
        """Return the regular cells (N, 2) that end after those given, by `until`.

        With them come their distances (N,), as shares of the distances in the whole video's
        lattice.
        """
        settings = self.model.lattice
        length = max(self.model.lengths.shortest / seconds, 1.0)
        longest = max(self.longest(seconds), length)
        cells, shares = [np.zeros((0, 2))], [np.zeros(0)]
        while length <= self.steps:
            usual = settings.stride * length
            stride = min(usual, APART)
            first = max(np.floor((self._given - length) / stride + 1e-9) + 1, 0.0)
            last = np.floor((until - length) / stride + 1e-9)
            starts = stride * np.arange(first, last + 1)
            if whole and (not len(starts) or starts[-1] + length < until - 1e-6):
                starts = np.append(starts, until - length)
            cells.append(np.stack([starts, starts + length], axis=1))
            shares.append(np.full(len(starts), stride / usual))
            if length >= longest:
                break
            length = min(length * settings.ratio, longest)
        return np.concatenate(cells), np.concatenate(shares)

    def _pairs(self, until: float, seconds: float) -> Float64:
        """Return the pairs (N, 2) of peaks that end by `until`, each end with the best starts."""
        shortest, longest = (length / seconds for length in self.model.lengths)
        pairs = [np.zeros((0, 2))]
        ready: NDArray[np.bool_] = self._ends[:, 0] <= until
        for end in self._ends[ready, 0]:
            lengths = end - self._starts[:, 0]
            starts = self._starts[(lengths >= shortest) & (lengths <= longest)]
            best = np.argsort(-starts[:, 1], kind="stable")[:_STARTS]
            pairs.append(np.stack([starts[best, 0], np.full(len(best), end)], axis=1))
        self._ends = self._ends[~ready]
        self._starts = self._starts[self._starts[:, 0] >= until - longest - _MARGIN]
        return np.concatenate(pairs)


class OnlineSelection(Resumable):
    """Takes cells as they are complete; gives the proposals that are due.

    Instances are expected at the `counted` cells of highest density nearby. A proposal is emitted
    if it adds at least `least` instances times recall.
    """

    changing = ("_cells", "_density", "_pending", "_covered", "_emitted")

    def __init__(self, counted: int = 1500, least: float = 1e-4) -> None:
        self.counted, self.least = counted, least
        self._cells = np.zeros((0, 2))
        self._density = np.zeros(0)
        self._pending = np.zeros(0, bool)
        self._covered = np.zeros(0, np.float32)  # tIoU of the emitted events at each cell
        self._emitted = np.zeros((0, 2))

    def add(self, cells: Float64, density: Float64) -> None:
        """Take cells (N, 2) and the instances (N,) expected at each."""
        self._cells = np.concatenate([self._cells, cells])
        self._density = np.concatenate([self._density, density])
        self._pending = np.concatenate([self._pending, np.ones(len(cells), bool)])
        covered = _reached(self._emitted, cells).max(axis=0, initial=0)
        self._covered = np.concatenate([self._covered, covered])

    def emit(self, due: float) -> tuple[Float64, Float64]:
        """Return the proposals (K, 2) that end by `due`, and what each adds (K,), best first."""
        # 1. the candidates that wait, and which of them are due
        rows = np.flatnonzero(self._pending)
        is_due = self._cells[rows, 1] <= due
        if not is_due.any():
            return np.zeros((0, 2)), np.zeros(0)
        self._pending[rows[is_due]] = False
        # 2. their tIoU with the likeliest cells around them
        near = np.flatnonzero(self._cells[:, 1] > self._cells[rows, 0].min())
        likely = near
        if len(near) > self.counted:
            likely = near[np.argpartition(-self._density[near], self.counted)[: self.counted]]
        expected = self._density[likely].astype(np.float32)
        covered = self._covered[likely]
        reached = _reached(self._cells[rows], self._cells[likely])  # (P, C)
        # 3. one by one the best of all; it is emitted if it is due
        left = np.ones(len(rows), bool)
        chosen, gains = [], []
        gain = _added(reached, covered) @ expected
        while True:
            gain[~left] = 0
            best = int(gain.argmax())
            if gain[best] < self.least:
                break
            left[best] = False
            if is_due[best]:
                chosen.append(rows[best])
                gains.append(float(gain[best]))
                if not (left & is_due).any():
                    break
            covered = np.maximum(covered, reached[best])
            # a gain can only fall, so a cell below the limit stays below
            left &= gain >= self.least
            gain[left] = _added(reached[left], covered) @ expected
        # 4. cells that an emitted proposal reaches are worth less from now on
        emitted = self._cells[chosen].reshape(-1, 2)
        if len(emitted):
            self._emitted = np.concatenate([self._emitted, emitted])
            here = _reached(emitted, self._cells).max(axis=0)
            np.maximum(self._covered, here, out=self._covered)
        return emitted, np.array(gains)

    def forget(self, before: float) -> None:
        """Drop what ends before a place that no later cell begins before."""
        kept = (self._cells[:, 1] > before) | self._pending
        for name in ("_cells", "_density", "_pending", "_covered"):
            setattr(self, name, getattr(self, name)[kept])
        self._emitted = self._emitted[self._emitted[:, 1] > before]


def _added(reached: Float32, covered: Float32) -> Float32:
    added = reached - covered
    np.maximum(added, 0, out=added)
    return added


def _reached(cells: Float64, others: Float64) -> Float32:
    """Return (N, M) what cells reach on instances at others.

    Places in a stream grow without end: their differences keep the digits of single precision.
    """
    if not len(cells) or not len(others):
        return np.zeros((len(cells), len(others)), np.float32)
    first, second = ((each - cells[0, 0]).astype(np.float32) for each in (cells, others))
    return recall_reached(pairwise_tiou(first, second))
