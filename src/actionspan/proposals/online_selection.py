"""Selection of proposals while the cells of a stream come: the causal form of `selection`.

A cell is a candidate until it is due. Then it is emitted, or never: its score is the recall that it
is expected to add to what was emitted and to the better candidates that may still wait. An emitted
proposal never changes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actionspan.arrays import Float32, Float64
from actionspan.proposals.selection import recall_reached

LEAST = 1e-4  # instances times recall that a proposal adds at least


class OnlineSelection:
    """Takes cells as they are complete; gives the proposals that are due.

    Args:
        counted: Cells of highest density, of those so near, where instances are expected.
        least: What a proposal adds at least to be emitted.
    """

    def __init__(self, counted: int = 1500, least: float = LEAST) -> None:
        self.counted, self.least = counted, least
        self._cells = np.zeros((0, 2))
        self._density = np.zeros(0)
        self._pending = np.zeros(0, bool)
        self._covered = np.zeros(0, np.float32)  # what was emitted reaches at each cell
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
        rows = np.flatnonzero(self._pending)
        is_due = self._cells[rows, 1] <= due
        if not is_due.any():
            return np.zeros((0, 2)), np.zeros(0)
        self._pending[rows[is_due]] = False
        near = np.flatnonzero(self._cells[:, 1] > self._cells[rows, 0].min())
        likely = near
        if len(near) > self.counted:
            likely = near[np.argpartition(-self._density[near], self.counted)[: self.counted]]
        expected = self._density[likely].astype(np.float32)
        covered = self._covered[likely]
        reached = _reached(self._cells[rows], self._cells[likely])  # (P, C)
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
            # a gain can only fall: what was worth too little stays so
            left &= gain >= self.least
            gain[left] = _added(reached[left], covered) @ expected
        found = self._cells[chosen].reshape(-1, 2)
        if len(found):
            self._emitted = np.concatenate([self._emitted, found])
            here = _reached(found, self._cells).max(axis=0)
            np.maximum(self._covered, here, out=self._covered)
        return found, np.array(gains)

    def forget(self, before: float) -> None:
        """Drop what ends before a place that no later cell begins before."""
        kept = (self._cells[:, 1] > before) | self._pending
        for name in ("_cells", "_density", "_pending", "_covered"):
            setattr(self, name, getattr(self, name)[kept])
        self._emitted = self._emitted[self._emitted[:, 1] > before]

    def state_dict(self) -> dict[str, Any]:
        """Return what another goes on with."""
        names = ("cells", "density", "pending", "covered", "emitted")
        return {name: getattr(self, f"_{name}").copy() for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        for name, values in state.items():
            setattr(self, f"_{name}", values.copy())


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
    origin = cells[0, 0]
    start, end = (cells - origin).astype(np.float32).T[..., None]  # (N, 1)
    other_start, other_end = (others - origin).astype(np.float32).T  # (M,)
    shared = np.minimum(end, other_end)
    shared -= np.maximum(start, other_start)
    hull = np.maximum(end, other_end)
    hull -= np.minimum(start, other_start)
    np.maximum(shared, 0, out=shared)
    shared /= hull
    return recall_reached(shared)
