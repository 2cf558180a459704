"""The span network: small dilated convolutions over snippets, cross-fitted on the training videos.

It is an ensemble. Each member leaves one part of the training videos out of its loss, with the
footage that others share with it, so that every step of a training video has probabilities by a
member that did not learn it: later fits on them (the density of instances, the
calibration of scores) see the same as on new videos, which get the mean of all members.

A member has two paths, as MTN: one sees the features, which describe the event; the other their
difference to the mean of the video, which marks the unusual, wherever the camera hangs.

The stream network serves a video while it is recorded: its second path sees the difference to a
running mean of the past, which the rows of causal.h5 hold, and its convolutions reach back as far
as span's on both sides together, but ahead by `look_ahead` snippets only.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from actionspan.temporal.labels import COLUMNS, KINDS
from actionspan.temporal.loss import BoundaryLoss, members_loss
from actionspan.temporal.network import TemporalNetwork

DILATIONS = (1, 2, 4)
PATHS = 2
_SHARE = 8  # a path of a member has an eighth of `hidden` maps


class SpanNetwork(TemporalNetwork):
    """Per path and member: Conv(W, 1, ReLU), three residual Conv(W, 3, ReLU), Conv(3, 1, sigmoid).

    The first of the C features of a step is 1 inside the video and 0 beyond its end (the column
    `inside` of sequences.h5). W is an eighth of `hidden`; the convolutions are dilated by 1, 2, 4.
    """

    columns = COLUMNS
    cross_fitted = True

    def __init__(
        self,
        channels: int,
        *,
        hidden: int = 512,
        output_scale: float = 1.0,
        dropout: float = 0.0,
        members: int = 3,
    ) -> None:
        super().__init__()
        self.channels, self.members, self.output_scale = channels, members, output_scale
        width, groups = max(1, hidden // _SHARE), PATHS * members
        seen, maps = self.seen(channels), groups * width
        self.raw = nn.Conv1d(seen, members * width, kernel_size=1)
        self.centred = nn.Conv1d(seen, members * width, kernel_size=1)
        self.layers = nn.ModuleList(
            nn.Conv1d(maps, maps, kernel_size=3, dilation=step, groups=groups) for step in DILATIONS
        )
        self.reaches = [(step, step) for step in DILATIONS]  # of each layer, back and ahead
        self.last = nn.Conv1d(maps, groups * KINDS, kernel_size=1, groups=groups)
        self.dropout = nn.Dropout(dropout)

    def seen(self, channels: int) -> int:
        """Return how many features of a step each path sees."""
        return channels - 1

    def views(self, values: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of the two paths from features (B, C - 1, T) and `inside` (B, 1, T)."""
        mean = (values * inside).sum(dim=2, keepdim=True) / inside.sum(dim=2, keepdim=True).clamp(1)
        return values, values - mean

    def logits(self, features: Tensor) -> Tensor:
        """Return (P, M, B, T, 3) of features (B, T, C): of each path of each member."""
        batch, steps, _ = features.shape
        # videos one behind the other, as half of a batch would be steps beyond their ends
        inside, places = features[..., :1].transpose(1, 2), torch.arange(1, steps + 1)  # (B, 1, T)
        lengths = ((inside[:, 0] != 0) * places.to(inside.device)).amax(dim=1).tolist()
        apart = max(max(reach) for reach in self.reaches)

        def joined(values: Tensor) -> Tensor:  # (B, C, T) to (1, C, N)
            ended = zip(values, lengths, strict=True)
            return torch.cat([pad(one[:, :n], (0, apart)) for one, n in ended], dim=1)[None]

        whole, centred = map(joined, self.views(features[..., 1:].transpose(1, 2), inside))
        maps, inside = torch.cat([self.raw(whole), self.centred(centred)], dim=1), joined(inside)
        maps = maps.relu() * inside  # (1, P·M·W, N)
        for layer, reach in zip(self.layers, self.reaches, strict=True):
            maps = (maps + layer(pad(self.dropout(maps), reach)).relu()) * inside
        parts = (self.output_scale * self.last(maps))[0].split([n + apart for n in lengths], dim=1)
        ended = zip(parts, lengths, strict=True)
        scores = torch.stack([pad(one[:, :n], (0, steps - n)) for one, n in ended])  # (B, P·M·3, T)
        scores = scores.view(batch, PATHS, self.members, KINDS, steps)
        return scores.permute(1, 2, 0, 4, 3)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities (B, T, 3) of features (B, T, C), the mean of all members."""
        return self.logits(features).sigmoid().mean(dim=(0, 1))

    def without(self, features: Tensor, part: int) -> Tensor:
        """Return the probabilities (B, T, 3) by the member that was trained without a part."""
        return self.logits(features)[:, part].sigmoid().mean(dim=0)

    def add_noise(self, video: Tensor, deviation: float, generator: torch.Generator) -> None:
        """Add noise to the steps inside the video, and none to the column that marks them."""
        rows = int(video[:, 0].sum())
        noise = torch.randn((rows, self.channels - 1), generator=generator)
        video[:rows, 1:] += deviation * noise

    def loss(self, features: Tensor, labels: Tensor, whole: Tensor | None = None) -> BoundaryLoss:
        """Return `members_loss`."""
        return members_loss(self.logits(features), labels, whole)


class StreamNetwork(SpanNetwork):
    """Span, its convolutions moved back in time; each path sees a half of a row of causal.h5."""

    def __init__(self, channels: int, *, look_ahead: int = 2, **shape: Any) -> None:
        super().__init__(channels, **shape)
        self.reaches, left = [], look_ahead
        for step in DILATIONS:  # the first layers look ahead
            ahead = min(step, left)
            left -= ahead
            self.reaches.append((2 * step - ahead, ahead))
        self.look_back, self.look_ahead = (sum(side) for side in zip(*self.reaches, strict=True))

    def seen(self, channels: int) -> int:
        """Return how many features of a step each path sees: a half, or raise ValueError."""
        if channels % 2 == 0:
            made = "stream learns from causal.h5, which `features causal` makes"
            raise ValueError(f"{channels} features a step: {made}")
        return (channels - 1) // 2

    def views(self, values: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of the two paths: the halves of the features (B, C - 1, T)."""
        whole, centred = values.chunk(2, dim=1)
        return whole, centred
