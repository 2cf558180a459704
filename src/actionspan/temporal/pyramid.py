"""An anchor-free pyramid, the form of ActionFormer (2022) and TriDet (2023), of convolutions."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, logsigmoid, softplus

from actionspan.temporal.labels import COLUMNS, KINDS
from actionspan.temporal.loss import BoundaryLoss, boundary_loss, instances_of, tiou
from actionspan.temporal.networks import Segments, TemporalNetwork

STRIDES = (1, 2, 4, 8, 16)  # steps between the points of each level
_FARTHEST = (4.0, 8.0, 16.0, 32.0, math.inf)  # steps from a level's point to a boundary of its own
_RADIUS = 1.5  # strides round the middle of an instance in which points learn it
_SHARE = 4  # a quarter of `hidden` maps
_RARE = 0.01  # a point's first probability
_ALPHA, _GAMMA = 0.25, 2  # of the focal loss


def points(steps: int) -> tuple[Tensor, Tensor]:
    """Return the place (P,), in steps, and the level (P,) of each point of a row of T steps.

    Point j of level l lies in the middle of step j · `STRIDES[l]`.
    """
    places = [torch.arange(0, steps, stride) + 0.5 for stride in STRIDES]
    levels = [torch.full((len(each),), level) for level, each in enumerate(places)]
    return torch.cat(places), torch.cat(levels)


def assign(instances: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Return the instance (B, P, 2) that each point learns, of (B, K, 2), and which do (B, P).

    A point learns the shortest instance that it lies in, not farther than 1.5 strides from its
    middle, whose farther boundary is in the level's range.
    """
    places, levels = points(steps)
    start, end = instances[:, None, :, 0], instances[:, None, :, 1]  # (B, 1, K)
    before, after = places[:, None] - start, end - places[:, None]  # (B, P, K)
    strides, farthest = torch.tensor(STRIDES)[levels], torch.tensor(_FARTHEST)[levels]  # (P,)
    nearest = torch.tensor((0.0, *_FARTHEST[:-1]))[levels]
    far = torch.maximum(before, after)
    own = (before > 0) & (after > 0) & (far >= nearest[:, None]) & (far < farthest[:, None])
    own &= (before - after).abs() / 2 <= _RADIUS * strides[:, None]
    length = torch.where(own, before + after, math.inf)
    shortest, which = length.min(dim=2)  # (B, P)
    learned = instances.gather(1, which[..., None].expand(-1, -1, 2))
    return learned, shortest < math.inf


def focal_loss(logits: Tensor, positive: Tensor) -> Tensor:
    """Return the focal loss of each entry (Lin et al., 2017): what is clear counts little."""
    likely = torch.where(positive, logits, -logits)
    weight = torch.where(positive, _ALPHA, 1 - _ALPHA)
    return -weight * (-likely).sigmoid() ** _GAMMA * logsigmoid(likely)


def distance_iou_loss(segments: Tensor, truth: Tensor) -> Tensor:
    """Return 1 - tIoU + (distance of the middles / hull)² of segments (N, 2) and truth (N, 2)."""
    (start, end), (other_start, other_end) = segments.unbind(dim=1), truth.unbind(dim=1)
    hull = torch.maximum(end, other_end) - torch.minimum(start, other_start)
    apart = (start + end - other_start - other_end) / 2 / hull.clamp(min=1e-6)
    return 1 - tiou(start, end, other_start, other_end) + apart.square()


class _Norm(nn.LayerNorm):
    """Layer norm of each step of (B, W, T)."""

    def forward(self, maps: Tensor) -> Tensor:
        normed: Tensor = super().forward(maps.transpose(1, 2))
        return normed.transpose(1, 2)


class _Block(nn.Module):
    """Mix neighbouring steps map by map, then the maps of each step; each adds to its input."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = _Norm(width)
        self.mix = nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.norm2 = _Norm(width)
        self.dense1 = nn.Conv1d(width, 2 * width, kernel_size=1)
        self.dense2 = nn.Conv1d(2 * width, width, kernel_size=1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, maps: Tensor) -> Tensor:
        """Return (B, W, T) of (B, W, T)."""
        maps = maps + self.mix(self.norm1(maps))
        hidden = gelu(self.dense1(self.norm2(maps)))
        mixed: Tensor = maps + self.dropout(self.dense2(hidden))
        return mixed


class _Head(nn.Module):
    """Conv(W, 3), norm, ReLU, Conv(outputs, 3), the same on each level."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(width, width, kernel_size=3, padding=1)
        self.norm = _Norm(width)
        self.conv2 = nn.Conv1d(width, outputs, kernel_size=3, padding=1)

    def forward(self, levels: list[Tensor]) -> Tensor:
        """Return (B, outputs, P) of the maps (B, W, T / stride) of each level."""
        return torch.cat([self.conv2(self.norm(self.conv1(maps)).relu()) for maps in levels], dim=2)


class Pyramid(TemporalNetwork):
    """Points on five levels of strides 1 to 16, each with a score and the way to its boundaries.

    Stem: twice Conv(W, 3), norm, ReLU. Each level: a block of two residual parts (a convolution
    over 5 steps map by map; dense layers on each step); the next begins with Conv(W, 3, stride 2).
    Heads of scores and distances are the same on all levels; a distance is softplus of the output
    times a factor that each level learns, in strides. Start, action and end have a head on level 0.
    W is a quarter of `hidden`.
    """

    columns = COLUMNS

    def __init__(
        self, channels: int, *, hidden: int = 512, output_scale: float = 1.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.channels, self.output_scale = channels, output_scale
        width = max(1, hidden // _SHARE)
        self.stem1 = nn.Conv1d(channels, width, kernel_size=3, padding=1)
        self.norm1 = _Norm(width)
        self.stem2 = nn.Conv1d(width, width, kernel_size=3, padding=1)
        self.norm2 = _Norm(width)
        self.blocks = nn.ModuleList(_Block(width, dropout) for _ in STRIDES)
        self.narrow = nn.ModuleList(
            nn.Conv1d(width, width, kernel_size=3, stride=2, padding=1) for _ in STRIDES[1:]
        )
        self.norms = nn.ModuleList(_Norm(width) for _ in STRIDES)
        self.steps = _Head(width, KINDS)
        self.score = _Head(width, 1)
        self.reach = _Head(width, 2)
        self.factors = nn.Parameter(torch.ones(len(STRIDES)))
        bias = self.score.conv2.bias
        assert bias is not None
        nn.init.constant_(bias, -math.log((1 - _RARE) / _RARE))
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C)."""
        return self._of_steps(self._levels(features)[0])

    def found(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `forward` does, the logits (B, P) and the segments (B, P, 2) of points.

        Segments are in steps and may pass the ends of the row.
        """
        levels = self._levels(features)
        logits = self.score(levels)[:, 0]  # (B, P)
        places, level = points(features.shape[1])  # (P,)
        strides = torch.tensor(STRIDES, dtype=features.dtype)[level]
        reach = strides * softplus(self.factors[level] * self.reach(levels))  # (B, 2, P)
        segments = torch.stack([places - reach[:, 0], places + reach[:, 1]], dim=2)  # (B, P, 2)
        return self._of_steps(levels[0]), logits, segments

    def _levels(self, features: Tensor) -> list[Tensor]:
        maps: Tensor = features.transpose(1, 2)  # (B, C, T)
        maps = self.dropout(self.norm1(self.stem1(maps)).relu())  # (B, W, T)
        maps = self.dropout(self.norm2(self.stem2(maps)).relu())  # (B, W, T)
        levels = [maps := self.blocks[0](maps)]
        for narrow, block in zip(self.narrow, list(self.blocks)[1:], strict=True):
            levels.append(maps := block(narrow(maps)))  # (B, W, T / stride)
        return [norm(level) for norm, level in zip(self.norms, levels, strict=True)]

    def _of_steps(self, maps: Tensor) -> Tensor:
        scores: Tensor = self.output_scale * self.steps([maps])  # (B, 3, T)
        return scores.sigmoid().transpose(1, 2)  # (B, T, 3)

    def loss(
        self, features: Tensor, labels: Tensor, whole: Tensor | None = None, soft: bool = False
    ) -> BoundaryLoss:
        """Return the loss of steps plus those of points, by the batch's number of learning points.

        Scores have a focal loss; segments, where a point learns one, a loss of overlap.
        """
        probabilities, logits, segments = self.found(features)
        of_steps = boundary_loss(probabilities, labels, whole, soft)
        steps = features.shape[1]
        truth, positive = assign(instances_of(labels), steps)  # (S, P, 2), (S, P)
        every = positive if whole is None else assign(instances_of(whole), steps)[1]
        parts = focal_loss(logits, positive).sum()
        parts = parts + distance_iou_loss(segments[positive], truth[positive]).sum()
        return of_steps._replace(total=of_steps.total + parts / every.sum().clamp(min=1))

    def segments(self, features: Tensor) -> list[Segments]:
        """Return the segment of each point of each row, best first, by the score's sigmoid."""
        steps = features.shape[1]
        _, logits, segments = self.found(features)
        inside = segments.clamp(0, steps) / steps  # (B, P, 2)
        scores = logits.sigmoid()
        order = scores.argsort(dim=1, descending=True, stable=True)
        return [
            Segments(ends[best], row[best])
            for best, row, ends in zip(order, scores, inside, strict=True)
        ]
