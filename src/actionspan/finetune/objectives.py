"""The objectives of tuning: proposals from a whole video, or scores of each snippet as it comes.

An objective takes the features (T, C) of a video's snippets, knows its labels, and returns a loss.
Between the encoders and its temporal network are the fixed steps of the features stage: principal
components and scales, fitted once on the features of the untuned encoders over the training videos,
and the rescaling to equal steps. Fitted on features.h5 instead, they would depend on their own
output.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.arrays import Float64, Int64
from actionspan.features.steps import cut_windows, merge_windows, rescale
from actionspan.features.transform import Transform
from actionspan.finetune.heads import CausalHead
from actionspan.finetune.videos import TunedVideo
from actionspan.temporal.labels import boundary_labels
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.settings import TemporalSettings


class Projection(nn.Module):
    """Features (T, C) of all streams side by side to (T, K): centred, projected and scaled."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.widths = [len(stream.mean) for stream in transform.streams.values()]
        for number, stream in enumerate(transform.streams.values()):
            kept = stream.components if len(stream.components) else np.eye(len(stream.mean))
            matrix = (kept * stream.scale[:, None]).T.astype(np.float32)  # (C, K)
            self.register_buffer(f"mean{number}", torch.from_numpy(stream.mean.copy()))
            self.register_buffer(f"matrix{number}", torch.from_numpy(np.ascontiguousarray(matrix)))

    def forward(self, features: Tensor) -> Tensor:
        """Project (T, C) features."""
        parts = [
            (part - self.get_buffer(f"mean{number}")) @ self.get_buffer(f"matrix{number}")
            for number, part in enumerate(torch.split(features, self.widths, dim=1))
        ]
        return torch.cat(parts, dim=1)


class Resampling(nn.Module):
    """Rows (T, K) of a video's snippets to the rows (N, S, K) that a temporal network takes.

    It is `features.steps.rescale` of the identity matrix; windows pick the nearest snippets.
    `times` are the (T,) centres of the snippets, `duration` the video's, both in seconds.
    """

    rows: Tensor

    def __init__(self, transform: Transform, times: Float64, duration: float) -> None:
        super().__init__()
        self.length = transform.length(times, duration)
        self.starts: Int64 = transform.starts(self.length)
        self.steps, count = transform.steps, len(times)
        by_number = transform.grid == "windows"
        source = np.arange(count) if by_number else np.eye(count)
        rows = rescale(source.astype(np.float32), times, duration, self.length, transform.method)
        # the numbers (L,) of snippets, or their weights (steps, T)
        self.register_buffer("rows", torch.from_numpy(rows.astype(np.int64) if by_number else rows))

    def forward(self, projected: Tensor) -> Tensor:
        """Rescale (T, K) rows and cut them into windows."""
        chosen = self.rows.dtype == torch.int64  # by number; else weights
        steps = projected[self.rows] if chosen else self.rows @ projected  # (L, K)
        beyond = max(0, int(self.starts[-1]) + self.steps - self.length)
        padded = nn.functional.pad(steps, (0, 0, 0, beyond))
        return torch.stack([padded[start : start + self.steps] for start in self.starts.tolist()])


class Target(nn.Module):
    """The `labels` of a video, and the resampling from its snippets to them."""

    labels: Tensor

    def __init__(self, labels: Tensor, resampling: Resampling | None = None) -> None:
        super().__init__()
        self.register_buffer("labels", labels)
        self.resampling = resampling


class Objective(nn.Module, ABC):
    """A temporal network over the fixed projection of features, and its loss."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform, self.projection = transform, Projection(transform)

    @abstractmethod
    def target(self, video: TunedVideo) -> Target:
        """Return the labels of a video."""

    @abstractmethod
    def loss(self, features: Tensor, target: Target, batch: Tensor) -> Tensor:
        """Return a video's part of the loss of a batch, a scalar.

        Features are (T, C); `batch` are the labels of all videos of the batch, one after another.
        """

    @abstractmethod
    def scores(self, features: Tensor, target: Target) -> tuple[Tensor, Tensor]:
        """Return scores (n, K) and which of them should be high, (n, K) bool."""


def backward(
    objective: Objective, targets: Sequence[Target], features: Iterable[Tensor], batch: Tensor
) -> float:
    """Run a backward pass for each video of a batch; return their part of its loss.

    Args:
        objective: The kind of loss.
        targets: Of the videos.
        features: Of each, (T, C), made when they are asked for.
        batch: The labels of all videos of the batch, on any rank, one after another.
    """
    total = 0.0
    for target, rows in zip(targets, features, strict=True):
        loss = objective.loss(rows, target, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total


class ProposalObjective(Objective):
    """Start, actionness and end of equal steps of the video, by a temporal network."""

    def __init__(
        self, transform: Transform, temporal: TemporalNetwork, settings: TemporalSettings
    ) -> None:
        super().__init__(transform)
        self.temporal, self._settings = temporal, settings

    def target(self, video: TunedVideo) -> Target:
        """Return the labels (N, S, 3) of the video's rows."""
        resampling = Resampling(self.transform, video.times, video.seconds)
        labels = boundary_labels(
            video.segments,
            video.seconds,
            steps=resampling.length,
            rule=self._settings.labels,
            boundary_ratio=self._settings.boundary_ratio,
        )
        rows = cut_windows(labels, resampling.starts, resampling.steps)
        return Target(torch.from_numpy(np.asarray(rows, np.float32)), resampling)

    def loss(self, features: Tensor, target: Target, batch: Tensor) -> Tensor:
        """Return the video's part of the balanced cross entropy of the batch."""
        return self.temporal.loss(self._rows(features, target), target.labels, batch).total

    def scores(self, features: Tensor, target: Target) -> tuple[Tensor, Tensor]:
        """Return actionness (n, 1) of the video's steps, the mean where windows overlap."""
        resampling = target.resampling
        assert resampling is not None

        def merged(rows: Tensor) -> Tensor:  # (N, S, 3) to (n, 1)
            action = rows[..., 1, None].float().cpu().numpy()  # of start, action, end
            return torch.from_numpy(merge_windows(action, resampling.starts, resampling.length))

        return merged(self.temporal(self._rows(features, target))), merged(target.labels) > 0.5

    def _rows(self, features: Tensor, target: Target) -> Tensor:
        assert target.resampling is not None
        rows: Tensor = target.resampling(self.projection(features))
        return rows


class OnlineObjective(Objective):
    """Which classes each snippet shows, by a head that sees no snippet behind it."""

    def __init__(self, transform: Transform, head: CausalHead, labels: Sequence[str]) -> None:
        super().__init__(transform)
        self.head, self.classes = head, list(labels)

    def target(self, video: TunedVideo) -> Target:
        """Return (T, K): 1 where the centre of a snippet lies in an instance of the class."""
        labels = np.zeros((len(video.times), len(self.classes)), np.float32)
        for each in video.instances:
            inside = (each.start <= video.times) & (video.times < each.end)
            if each.label in self.classes:  # others occur in videos that are not learned from
                labels[inside, self.classes.index(each.label)] = 1
        return Target(torch.from_numpy(labels))

    def loss(self, features: Tensor, target: Target, batch: Tensor) -> Tensor:
        """Return the video's part of the mean cross entropy of all snippets and classes."""
        logits = self.head(self.projection(features))
        loss = functional.binary_cross_entropy_with_logits(logits, target.labels, reduction="sum")
        return loss / batch.numel()

    def scores(self, features: Tensor, target: Target) -> tuple[Tensor, Tensor]:
        """Return the probability of each class for each snippet."""
        return self.head(self.projection(features)).sigmoid(), target.labels > 0.5
