"""A boundary-matching network (Lin et al., "BMN", ICCV 2019), small enough for a CPU.

Row d - 1, column s of the matching map (T - 1, T) stands for the segment from the middle of step s
to the middle of step s + d. Cells whose end lies beyond the last step are in the map, but stand for
nothing.
"""

from functools import lru_cache

import torch
from torch import Tensor, nn

from actionspan.temporal import loss as losses
from actionspan.temporal.labels import COLUMNS, KINDS
from actionspan.temporal.networks import Segments, TemporalNetwork

SAMPLES = 16  # of each segment and its surroundings
FINER = 2  # points whose mean is a sample
REACH = 0.5  # of the segment's length, to each side


def cell_steps(steps: int) -> tuple[Tensor, Tensor]:
    """Return the start and end step (T - 1, T) of each cell; ends may be T or more."""
    starts = torch.arange(steps).expand(max(steps - 1, 1), steps)
    return starts, starts + torch.arange(1, len(starts) + 1)[:, None]


def cell_overlaps(instances: Tensor, steps: int) -> Tensor:
    """Return the highest tIoU (B, T - 1, T) of each cell with instances (B, K, 2) in steps.

    It is 0 in cells that stand for nothing.
    """
    starts, ends = cell_steps(steps)
    real = ends < steps
    start, end = starts[real] + 0.5, ends[real] + 0.5  # (M,)
    best = instances.new_zeros(len(instances), *starts.shape)
    overlaps = losses.tiou(start, end, instances[..., :1], instances[..., 1:])  # (B, K, M)
    best[:, real] = overlaps.amax(dim=1)
    return best


@lru_cache(maxsize=4)
def sampling_matrix(steps: int, dtype: torch.dtype) -> Tensor:
    """Return the sparse matrix ((T - 1)·T, SAMPLES·T) that samples a sequence for each cell.

    Row (d - 1)·T + s times SAMPLES sequences of T steps, one after another, is the sum over k of
    sample k of sequence k. Samples divide a segment with `REACH` to each side evenly; each is the
    mean of `FINER` points, linear between steps and 0 beyond the first and last.
    """
    starts, ends = cell_steps(steps)
    cells = (ends < steps).flatten().nonzero()  # (M, 1)
    start, end = starts.flatten()[cells], ends.flatten()[cells]
    count = SAMPLES * FINER
    places = (torch.arange(count, dtype=torch.float64) + 0.5) / count * (1 + 2 * REACH) - REACH
    positions = start + (end - start) * places  # (M, count)
    sample = (torch.arange(count) // FINER).expand(positions.shape)
    before = positions.floor()
    rows, columns, values = [], [], []
    for step, weight in ((before, before + 1 - positions), (before + 1, positions - before)):
        used = (step >= 0) & (step < steps) & (weight > 0)
        rows.append(cells.expand(positions.shape)[used])
        columns.append((sample * steps + step.long())[used])
        values.append(weight[used] / FINER)
    entries = torch.stack([torch.cat(rows), torch.cat(columns)])
    shape = (starts.numel(), SAMPLES * steps)
    weights = torch.cat(values).to(dtype)
    return torch.sparse_coo_tensor(entries, weights, shape, check_invariants=True).coalesce()


def match(maps: Tensor, kernel: Tensor) -> Tensor:
    """Return (B, O, T - 1, T): `kernel` (O, W, SAMPLES) on the samples of maps (B, W, T).

    This is BMN's matching layer and the convolution over its samples. BMN samples first, W maps of
    each cell, and convolves then; both are linear, so that the kernel can come first, on T steps in
    place of T² / 2 cells, with the same result.
    """
    batch, _, steps = maps.shape
    sequences = torch.einsum("owk,bwt->ktbo", kernel, maps).reshape(SAMPLES * steps, -1)
    sampler = sampling_matrix(steps, maps.dtype)
    sampled: Tensor = torch.sparse.mm(sampler, sequences)  # ((T - 1)·T, B·O)
    return sampled.view(-1, steps, batch, len(kernel)).permute(2, 3, 0, 1)


_SHARE, _CELL_SHARE = 4, 32  # of `hidden`: the maps of a step, and of a cell
_FEWEST = 8  # maps of a cell: with two or three, ReLUs soon let nothing through
_HIGH, _LOW = 0.7, 0.3  # tIoU of the groups that weigh alike in the regression
_CLASS = 0.9  # a cell is positive above this tIoU
_REGRESSION = 5.0  # weight of the mean squared error (BMN: 10, of half of it)
_MOST = 1000  # segments of a row


class BoundaryMatching(TemporalNetwork):
    """Start, action and end of each step, and two confidences of each pair of start and end.

    Base: twice Conv(W, 3, ReLU). Steps: Conv(W, 3, ReLU), Conv(3, 1, sigmoid). Pairs: Conv(W, 3,
    ReLU), the matching layer with its convolution over samples to V maps, ReLU, twice
    Conv2d(V, 3×3, ReLU), Conv2d(2, 1×1, sigmoid): whether the tIoU is above 0.9, and the tIoU.
    W is a quarter of `hidden`, V an eighth of W, but at least 8 (BMN: 256 and 128 maps).
    """

    most_steps = 512  # memory grows with their square
    columns = COLUMNS

    def __init__(
        self, channels: int, *, hidden: int = 512, output_scale: float = 1.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.channels, self.output_scale = channels, output_scale
        width, cells = max(1, hidden // _SHARE), max(_FEWEST, hidden // _CELL_SHARE)
        self.base1 = nn.Conv1d(channels, width, kernel_size=3, padding=1)
        self.base2 = nn.Conv1d(width, width, kernel_size=3, padding=1)
        self.steps1 = nn.Conv1d(width, width, kernel_size=3, padding=1)
        self.steps2 = nn.Conv1d(width, KINDS, kernel_size=1)
        self.pairs = nn.Conv1d(width, width, kernel_size=3, padding=1)
        self.samples = nn.Conv3d(width, cells, kernel_size=(SAMPLES, 1, 1))
        self.map1 = nn.Conv2d(cells, cells, kernel_size=3, padding=1)
        self.map2 = nn.Conv2d(cells, cells, kernel_size=3, padding=1)
        self.map3 = nn.Conv2d(cells, 2, kernel_size=1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        return self._of_steps(self._base(features))

    def confidences(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `forward` does, and the confidences (B, 2, T - 1, T) of pairs.

        They are the probability of a tIoU above 0.9, and the tIoU itself.
        """
        maps = self._base(features)
        kernel, bias = self.samples.weight.flatten(2), self.samples.bias
        assert bias is not None
        cells = match(self.pairs(maps).relu(), kernel)  # (B, V, T - 1, T)
        cells = (cells + bias[:, None, None]).relu().contiguous()
        scores: Tensor = self.map3(self.map2(self.map1(cells).relu()).relu())  # (B, 2, T - 1, T)
        return self._of_steps(maps), scores.sigmoid()

    def _base(self, features: Tensor) -> Tensor:
        maps: Tensor = self.dropout(self.base1(features.transpose(1, 2)).relu())  # (B, W, T)
        base: Tensor = self.dropout(self.base2(maps).relu())  # (B, W, T)
        return base

    def _of_steps(self, maps: Tensor) -> Tensor:
        scores: Tensor = self.output_scale * self.steps2(self.steps1(maps).relu())  # (B, 3, T)
        return scores.sigmoid().transpose(1, 2)  # (B, T, 3)

    def loss(
        self, features: Tensor, labels: Tensor, whole: Tensor | None = None, soft: bool = False
    ) -> losses.BoundaryLoss:
        """Return the loss of steps plus those of pairs; cells that stand for nothing do not count.

        The probability of a tIoU above 0.9 has a balanced cross entropy. The tIoU has a mean
        squared error in which cells of high, middle and low tIoU weigh alike: BMN draws as many of
        each at random, and here each has the expected weight of a draw.
        """
        probabilities, confidences = self.confidences(features)
        of_steps = losses.boundary_loss(probabilities, labels, whole, soft)
        starts, ends = cell_steps(features.shape[1])
        real = ends < features.shape[1]
        every = labels if whole is None else whole
        truth, all_truth = (
            cell_overlaps(losses.instances_of(rows), features.shape[1])[:, real]
            for rows in (labels, every)
        )  # (S, M), (B, M)
        likely, expected = confidences[:, :, real].unbind(dim=1)  # (S, M) each
        classes = (truth > _CLASS).float(), (all_truth > _CLASS).float()
        entropy = losses.weighted_binary_loss(likely, *classes)
        weights = _balance(truth, all_truth)
        error = (weights * (expected - truth).square()).sum() / _balance(all_truth, all_truth).sum()
        return of_steps._replace(total=of_steps.total + entropy + _REGRESSION * error)

    def segments(self, features: Tensor) -> list[Segments]:
        """Return the best pairs of each row, by the root of p_start · p_end · both confidences."""
        steps = features.shape[1]
        probabilities, confidences = self.confidences(features)
        starts, ends = cell_steps(steps)
        real = ends < steps
        start, end = starts[real], ends[real]  # (M,)
        pairs = probabilities[:, start, 0] * probabilities[:, end, 2]  # (B, M)
        scores = (pairs * confidences.prod(dim=1)[:, real]).sqrt()
        segments = (torch.stack([start, end], dim=1) + 0.5) / steps  # (M, 2)
        order = scores.argsort(dim=1, descending=True, stable=True)[:, :_MOST]
        return [
            Segments(segments[best], row[best]) for best, row in zip(order, scores, strict=True)
        ]


def _balance(overlaps: Tensor, every: Tensor) -> Tensor:
    """Return the weight of each cell by its tIoU: the high ones 1, other groups as much together.

    No cell weighs more than 1. The sizes of the groups are those in `every`.
    """
    high, low = every > _HIGH, every < _LOW
    counts = [group.sum().clamp(min=1) for group in (high, low, ~high & ~low)]
    few, many, rest = counts
    middle = (few / rest).clamp(max=1).expand(overlaps.shape)
    weights = torch.where(overlaps < _LOW, (few / many).clamp(max=1), middle)
    return torch.where(overlaps > _HIGH, torch.ones_like(weights), weights)
