"""The density of instances: how many are expected at each cell of a lattice of segments.

Instances are taken for a Poisson process over the lattice. Its density at a cell follows from the
boundary curves in and round it (`proposals.cells`), by a small network that learns two more things
of a cell along the way: its best tIoU with an instance and the recall that it reaches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.files.torch_files import Part
from actionspan.proposals.cells import FEATURES, cell_features
from actionspan.proposals.events import Calibration
from actionspan.proposals.lattice import Lengths, lattice
from actionspan.proposals.peaks import peak_pairs
from actionspan.proposals.settings import LatticeSettings
from actionspan.running.determinism import deterministic

OUTPUTS = 3  # tIoU, recall reached, density; each before its last function
LOG_RANGE = (-12.0, 12.0)  # of the density to its mean
MOST_MEMBERS, MOST_AHEAD = 100, 1000
_BLOCK = 16384  # cells at once


class Intensity(nn.Module):
    """Two hidden layers; features are standardised by `centre` and `scale` (F,) first.

    The features are those of `cells_of`: of a cell, and whether it is a pair of peaks. `base` is
    the mean density of a cell.
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
        self.layers = nn.Sequential(
            nn.Linear(features, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, OUTPUTS),
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return (N, 3) of features (N, F): logits of tIoU and reach, log of density / base."""
        outputs: Tensor = self.layers((features - self.centre) / self.scale)
        return outputs

    def density(self, features: Float32) -> Float64:
        """Return the instances (N,) expected at cells of these features (N, F), on one thread."""
        found = []
        with deterministic(threads=1), torch.inference_mode():
            for first in range(0, len(features), _BLOCK):
                block = torch.from_numpy(features[first : first + _BLOCK])
                logarithm = self(block)[:, -1].clamp(*LOG_RANGE)
                found.append((logarithm.exp() * self.base).numpy())
        return np.concatenate(found).astype(np.float64)


def cells_of(
    probabilities: Float32,
    seconds: float,
    lengths: Lengths,
    settings: LatticeSettings,
    ahead: float | None = None,
) -> tuple[Float64, Float32]:
    """Return the cells (N, 2) of a video in steps and their features (N, F): lattice and pairs."""
    cells, paired = _lattice_and_pairs(probabilities, seconds, lengths, settings)
    return cells, paired_features(probabilities, cells, paired, seconds, ahead)


def _lattice_and_pairs(
    probabilities: Float32, seconds: float, lengths: Lengths, settings: LatticeSettings
) -> tuple[Float64, NDArray[np.bool_]]:
    """Return the cells (N, 2) of a video in steps, and which are pairs of peaks."""
    shortest, longest = (length / seconds for length in lengths)
    regular = lattice(len(probabilities), shortest, longest, settings)
    pairs = peak_pairs(probabilities, shortest, longest, settings.pairs)
    cells = np.concatenate([regular, pairs])
    return cells, np.arange(len(cells)) >= len(regular)


def paired_features(
    probabilities: Float32,
    cells: Float64,
    paired: NDArray[np.bool_],
    seconds: float,
    ahead: float | None,
) -> Float32:
    """Return the features (N, F) of cells (N, 2) in steps, and whether they are pairs of peaks."""
    features = cell_features(probabilities, cells, seconds, ahead)
    return np.concatenate([features, paired[:, None].astype(np.float32)], axis=1)


@dataclass(frozen=True, kw_only=True)
class DensityModel:
    """Members that each left out a part of the training videos, and what goes with them.

    `ahead` is how many steps behind its end a cell is seen, for a stream; None: all of them.
    """

    members: Sequence[Intensity]
    lengths: Lengths
    lattice: LatticeSettings
    calibration: Calibration
    ahead: float | None = None

    def density(
        self, probabilities: Float32, duration: float, part: int | None = None
    ) -> tuple[Float64, Float64]:
        """Return the cells (N, 2) of a video in seconds and the density (N,) at each.

        It is the mean of all members, or that of the member which left out a `part`.

        Args:
            probabilities: (T, 3) start, actionness and end.
            duration: Of the video, in seconds.
            part: That of a training video.
        """
        seconds = duration / len(probabilities)
        cells, paired = _lattice_and_pairs(probabilities, seconds, self.lengths, self.lattice)
        density = []
        for first in range(0, len(cells), _BLOCK):  # all features would take much memory
            block = slice(first, first + _BLOCK)
            features = paired_features(
                probabilities, cells[block], paired[block], seconds, self.ahead
            )
            density.append(self.expected(features, part))
        return cells * seconds, np.concatenate(density)

    def expected(self, features: Float32, part: int | None = None) -> Float64:
        """Return the density (N,) at cells of these features (N, F); `part` is that above."""
        asked = self.members if part is None else [self.members[part]]
        density: Float64 = np.mean([member.density(features) for member in asked], axis=0)
        return density


def density_state(model: DensityModel) -> dict[str, Any]:
    """Return what `density_from_state` needs, as `torch.load(weights_only=True)` allows."""
    return {
        "members": [member.state_dict() for member in model.members],
        "lengths": list(model.lengths),
        "lattice": asdict(model.lattice),
        "calibration": list(model.calibration),
        "ahead": model.ahead,
    }


def density_from_state(state: Mapping[str, Any] | Part) -> DensityModel:
    """Build the model that `density_state` described.

    Raises:
        InputError: It is none.
    """
    part = state if isinstance(state, Part) else Part(state, "density")
    members = []
    for member in part["members"].items(1, MOST_MEMBERS):
        first = member["layers.0.weight"]
        hidden = len(first.tensor(None, FEATURES + 1))
        if float(member["base"].tensor()) < 0 or float(member["scale"].tensor(None).min()) <= 0:
            raise InputError(f"{member.name}: base and scale: above 0")
        members.append(member.network(partial(Intensity, hidden), "the density"))
    low, high = (each.number(1e-6, 1e9) for each in part["lengths"].items(2, 2))
    offset, slope, bar = part["calibration"].items(3, 3)
    if low > high:
        part["lengths"].refuse("the shortest first")
    return DensityModel(
        members=members,
        lengths=Lengths(low, high),
        lattice=part["lattice"].settings(LatticeSettings),
        calibration=Calibration(offset.number(-1e6, 1e6), slope.number(0, 1e6), bar.number(0, 1)),
        ahead=part["ahead"].number(0, MOST_AHEAD) if "ahead" in part else None,
    )
