"""The density of instances: how many are expected at each cell of a lattice of segments.

Instances are taken for a Poisson process over the lattice. A small network gives its density at a
cell from the boundary curves in and around it; it also learns the cell's best tIoU with an instance
and the recall that it reaches.

The density sees of a segment:

| values | what |
|---|---|
| 12 | actionness along the segment |
| 27 + 27 | start, actionness, end at 9 places across its start and across its end |
| 15 + 15 | the same at 5 places one step apart, whatever its length |
| 12 | their means inside, in the half length before and behind, and in the middle half |
| 3 | logarithm of the length in seconds, as share of the video, and in steps |

Where a video is cut, runs of its shots are segments too, and take a share of the density at
those near them (`shots.py`): the share of training instances that begin and end at cuts. Bouts of
motion are segments too where that made the lists of the training videos better.

None of it depends on where in the video the segment lies. In a stream the density sees a segment
soon after its end: some steps behind it the curves stay as they are, and the logarithm of the share
of the video is 0.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.jobs.determinism import deterministic
from actionspan.proposals.lattice import Lengths, lattice, peak_pairs
from actionspan.proposals.selection import Calibration, Chosen, choose_cells
from actionspan.proposals.settings import EventSettings, LatticeSettings, SelectionSettings
from actionspan.proposals.shots import on_shots
from actionspan.storage.model_files import Part
from actionspan.temporal.labels import ACTIONNESS, KINDS
from actionspan.video.marks import Marks

_ALONG = np.linspace(0.03, 0.97, 12)  # of the length
_ACROSS = np.linspace(-0.4, 0.4, 9)  # of the length, or of `_REACH` steps if that is more
_REACH = 2.5
_STEPWISE = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
_LEAST = 0.25  # steps that a mean is taken over
FEATURES = len(_ALONG) + 2 * KINDS * (len(_ACROSS) + len(_STEPWISE)) + 4 * KINDS + 3


def cell_features(
    probabilities: ArrayLike, cells: Float64, seconds: float, ahead: float | None = None
) -> Float32:
    """Return the features (N, 111) of segments (N, 2), in steps of `seconds` each.

    The curves (T, 3) are start, actionness and end of a video; beyond its ends they are 0. They are
    seen up to `ahead` steps behind a segment's end; None: all.
    """
    curves = np.asarray(probabilities, np.float64).T  # (3, T)
    steps = curves.shape[1]
    start, end = cells[:, :1], cells[:, 1:]  # (N, 1)
    length = end - start
    last = np.full_like(end, np.inf) if ahead is None else end + ahead  # (N, 1)
    across = np.maximum(length, _REACH) * _ACROSS  # (N, 9)
    sampled = [
        _sample(curves[ACTIONNESS : ACTIONNESS + 1], start + length * _ALONG),
        *(
            _sample(curves, np.minimum(edge + places, last))
            for places in (across, _STEPWISE)
            for edge in (start, end)
        ),
    ]
    half, quarter = length / 2, length / 4
    sums = np.concatenate([np.zeros((KINDS, 1)), np.cumsum(curves, axis=1)], axis=1)
    regions = [(start, end), (start - half, start), (end, np.minimum(end + half, last))]
    means = [_means(sums, *region) for region in [*regions, (start + quarter, end - quarter)]]
    share = length / steps if ahead is None else np.ones_like(length)
    sizes = np.log(np.concatenate([length * seconds, share, length], axis=1))
    return np.concatenate([*sampled, *means, sizes], axis=1).astype(np.float32)


def _sample(curves: Float64, places: Float64) -> Float64:
    """Return (N, K·P) values of K curves at places (N, P), linear between the steps' middles."""
    steps = curves.shape[1]
    padded = np.pad(curves, ((0, 0), (1, 2)))
    position = np.clip(places + 0.5, 0, steps + 1)
    before = position.astype(np.intp)
    share = position - before
    values = padded[:, before] * (1 - share) + padded[:, before + 1] * share  # (K, N, P)
    flat: Float64 = values.transpose(1, 0, 2).reshape(len(places), -1)
    return flat


def _means(sums: Float64, first: Float64, last: Float64) -> Float64:
    """Return (N, K) means of K curves from `first` to `last` (N, 1), cut to the video."""
    edges = np.arange(sums.shape[1])
    first, last = (np.clip(ends[:, 0], 0, edges[-1]) for ends in (first, last))
    areas = [np.interp(last, edges, row) - np.interp(first, edges, row) for row in sums]
    means: Float64 = np.stack(areas, axis=1) / np.maximum(last - first, _LEAST)[:, None]
    return means


LOG_RANGE = (-12.0, 12.0)  # of the density to its mean
_BLOCK = 16384  # cells at once


class Intensity(nn.Module):
    """Two hidden layers; features are standardised by `centre` and `scale` (F,) first.

    Features are `DensityModel.features`. `base` is the mean density of a cell.
    """

    centre: Tensor
    scale: Tensor
    base: Tensor

    def __init__(
        self, hidden: int = 64, dropout: float = 0.0, features: int = FEATURES + 1
    ) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.register_buffer("base", torch.ones(()))
        first = nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(dropout)
        second = nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout)
        self.layers = nn.Sequential(*first, *second, nn.Linear(hidden, 3))

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, 3) of features (N, F): logits of tIoU and reach, log of density / base."""
        outputs: Tensor = self.layers((features - self.centre) / self.scale)
        return outputs

    def density(self, features: Float32) -> Float64:
        """Return the instances (N,) expected at cells of these features (N, F), on one thread."""
        blocks = []
        with deterministic(threads=1), torch.inference_mode():
            for first in range(0, len(features), _BLOCK):
                block = torch.from_numpy(features[first : first + _BLOCK])
                logarithm = self(block)[:, -1].clamp(*LOG_RANGE)
                blocks.append((logarithm.exp() * self.base).numpy())
        return np.concatenate(blocks).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class DensityModel:
    """Members that each left out a part of the training videos, and what goes with them."""

    members: Sequence[Intensity]
    lengths: Lengths
    lattice: LatticeSettings
    calibration: Calibration
    ahead: float | None = None  # steps behind its end that a cell is seen, for a stream; None: all
    on_cuts: float = 0.0  # share of instances that begin and end where a video is cut
    per_bout: float = 0.0  # instances expected at each bout on top

    def cells(self, probabilities: Float32, seconds: float) -> tuple[Float64, NDArray[np.bool_]]:
        """Return the cells (N, 2) of a video in steps, and which are pairs of peaks (N,)."""
        shortest, longest = (length / seconds for length in self.lengths)
        regular = lattice(len(probabilities), shortest, longest, self.lattice)
        pairs = peak_pairs(probabilities, shortest, longest, self.lattice.pairs)
        cells = np.concatenate([regular, pairs])
        return cells, np.arange(len(cells)) >= len(regular)

    def features(
        self, probabilities: Float32, cells: Float64, paired: NDArray[np.bool_], seconds: float
    ) -> Float32:
        """Return the features (N, F) of cells (N, 2) in steps; the last is whether it is a pair."""
        features = cell_features(probabilities, cells, seconds, self.ahead)
        return np.concatenate([features, paired[:, None].astype(np.float32)], axis=1)

    def density(
        self,
        probabilities: Float32,
        duration: float,
        part: int | None = None,
        marks: Marks | None = None,
    ) -> tuple[Float64, Float64]:
        """Return the cells (N, 2) of a video in seconds and the density (N,) at each.

        It is the mean of all members; of a training video of a `part`, the density by the member
        that left it out. Probabilities are (T, 3), the duration in seconds; `marks` are where the
        video is cut and when something moves, if that is known.
        """
        seconds = duration / len(probabilities)
        cells, paired = self.cells(probabilities, seconds)
        density = []
        for first in range(0, len(cells), _BLOCK):  # all features would take much memory
            block = slice(first, first + _BLOCK)
            features = self.features(probabilities, cells[block], paired[block], seconds)
            density.append(self.expected(features, part))
        found = cells * seconds, np.concatenate(density)
        if marks is None:
            return found
        found = on_shots(*found, marks.cuts, duration, self.on_cuts)
        return _with_bouts(*found, marks.moves(duration), self.per_bout)

    def expected(self, features: Float32, part: int | None = None) -> Float64:
        """Return the density (N,) at cells with features (N, F), see `density`."""
        members = self.members if part is None else [self.members[part]]
        density: Float64 = np.mean([member.density(features) for member in members], axis=0)
        return density


def _with_bouts(
    cells: Float64, density: Float64, bouts: Float64, per_bout: float
) -> tuple[Float64, Float64]:
    """Return segments (N, 2) with bouts (B, 2) added, each with `per_bout` instances on top."""
    if not per_bout:
        return cells, density
    more = np.full(len(bouts), per_bout)
    return np.concatenate([cells, bouts]), np.concatenate([density, more])


def density_state(model: DensityModel) -> dict[str, Any]:
    """Return what `density_from_state` needs, as `torch.load(weights_only=True)` allows."""
    return {
        "members": [member.state_dict() for member in model.members],
        "lengths": list(model.lengths),
        "lattice": asdict(model.lattice),
        "calibration": list(model.calibration),
        "ahead": model.ahead,
        "on_cuts": model.on_cuts,
        "per_bout": model.per_bout,
    }


def density_from_state(part: Part) -> DensityModel:
    """Build the model that `density_state` described, or raise InputError."""
    members = []
    for member in part["members"].items(1, 100):
        hidden = len(member["layers.0.weight"].tensor(None, FEATURES + 1))
        network = member.network(partial(Intensity, hidden), "the density")
        if network.base < 0 or network.scale.min() <= 0:
            raise InputError(f"{member.name}: base and scale: above 0")
        members.append(network)
    low, high = (each.number(1e-6, 1e9) for each in part["lengths"].items(2, 2))
    offset, slope, bar = part["calibration"].items(3, 3)
    if low > high:
        part["lengths"].refuse("the shortest first")
    return DensityModel(
        members=members,
        lengths=Lengths(low, high),
        lattice=part["lattice"].settings(LatticeSettings),
        calibration=Calibration(offset.number(-1e6, 1e6), slope.number(0, 1e6), bar.number(0, 1)),
        ahead=part["ahead"].number(0, 1000) if "ahead" in part else None,
        on_cuts=part["on_cuts"].number(0, 1) if "on_cuts" in part else 0.0,
        per_bout=part["per_bout"].number(0, 1) if "per_bout" in part else 0.0,
    )


def choose(
    probabilities: Float32,
    duration_seconds: float,
    model: DensityModel,
    selection: SelectionSettings | None = None,
    events: EventSettings | None = None,
    marks: Marks | None = None,
) -> Chosen:
    """Return one video's proposals and events in seconds, best first.

    Probabilities are (T, 3), in 0…1; `marks` see `DensityModel.density`. A score is the expected
    recall that a proposal adds.
    """
    values = np.asarray(probabilities, np.float32)  # as the workflow writes them
    cells, density = model.density(values, duration_seconds, marks=marks)
    return choose_cells(cells, density, model.calibration, selection, events)
