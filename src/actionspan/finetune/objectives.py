"""What encoders are tuned for: proposals from a whole video, or scores of each snippet as it comes.

An objective takes the features (T, C) of a video's snippets, knows its labels, and returns a loss.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.features.transform import Transform
from actionspan.features.windows import cut_windows, merge_windows
from actionspan.finetune.heads import CausalHead
from actionspan.finetune.projection import Projection, Resampling
from actionspan.finetune.videos import TunedVideo
from actionspan.temporal.labels import boundary_labels
from actionspan.temporal.networks import TemporalNetwork
from actionspan.temporal.settings import TemporalSettings

_ACTION = 1  # of start, action, end


class Target(nn.Module):
    """What a video should give: `labels`, and what leads there from its snippets."""

    labels: Tensor

    def __init__(self, labels: Tensor, resampling: Resampling | None = None) -> None:
        super().__init__()
        self.register_buffer("labels", labels)
        self.resampling = resampling


class Objective(nn.Module, ABC):
    """A temporal network over the fixed projection of features, and its loss."""

    def __init__(self, projection: Projection) -> None:
        super().__init__()
        self.projection = projection

    @abstractmethod
    def target(self, video: TunedVideo) -> Target:
        """Return what the video should give."""

    @abstractmethod
    def loss(self, features: Tensor, target: Target, whole: Tensor) -> Tensor:
        """Return a video's part of the loss of a batch, a scalar.

        Args:
            features: (T, C) of the video's snippets.
            target: Of the video.
            whole: The labels of all videos of the batch, one after another.
        """

    @abstractmethod
    def scores(self, features: Tensor, target: Target) -> tuple[Tensor, Tensor]:
        """Return scores (n, K) and which of them should be high, (n, K) bool."""


class ProposalObjective(Objective):
    """Start, actionness and end of equal steps of the video, by a temporal network."""

    def __init__(
        self,
        projection: Projection,
        transform: Transform,
        temporal: TemporalNetwork,
        settings: TemporalSettings,
    ) -> None:
        super().__init__(projection)
        self.temporal = temporal
        self._transform, self._settings = transform, settings

    def target(self, video: TunedVideo) -> Target:
        """Return the labels (N, S, 3) of the video's rows."""
        resampling = Resampling(self._transform, video.times, video.seconds)
        labels = boundary_labels(
            video.segments,
            video.seconds,
            steps=resampling.length,
            rule=self._settings.labels,
            boundary_ratio=self._settings.boundary_ratio,
            sigma=self._settings.smooth_labels,
        )
        rows = cut_windows(labels, resampling.starts, resampling.steps)
        return Target(torch.from_numpy(np.asarray(rows, np.float32)), resampling)

    def loss(self, features: Tensor, target: Target, whole: Tensor) -> Tensor:
        """Return the video's part of the balanced cross entropy of the batch."""
        soft = self._settings.smooth_labels > 0
        return self.temporal.loss(self._rows(features, target), target.labels, whole, soft).total

    def scores(self, features: Tensor, target: Target) -> tuple[Tensor, Tensor]:
        """Return actionness (n, 1) of the video's steps, the mean where windows overlap."""
        resampling = target.resampling
        assert resampling is not None
        probabilities = self.temporal(self._rows(features, target))

        def merged(rows: Tensor) -> Tensor:  # (N, S, 3) to (n, 1)
            action = rows[..., _ACTION, None].float().cpu().numpy()
            return torch.from_numpy(merge_windows(action, resampling.starts, resampling.length))

        return merged(probabilities), merged(target.labels) > 0.5

    def _rows(self, features: Tensor, target: Target) -> Tensor:
        assert target.resampling is not None
        rows: Tensor = target.resampling(self.projection(features))
        return rows


class OnlineObjective(Objective):
    """Which classes each snippet shows, by a head that sees no snippet behind it."""

    def __init__(self, projection: Projection, head: CausalHead, labels: Sequence[str]) -> None:
        super().__init__(projection)
        self.head, self.classes = head, list(labels)

    def target(self, video: TunedVideo) -> Target:
        """Return (T, K): 1 where the centre of a snippet lies in an instance of the class."""
        labels = np.zeros((len(video.times), len(self.classes)), np.float32)
        for each in video.instances:
            inside = (each.start <= video.times) & (video.times < each.end)
            if each.label in self.classes:  # others occur in videos that are not learned from
                labels[inside, self.classes.index(each.label)] = 1
        return Target(torch.from_numpy(labels))

    def loss(self, features: Tensor, target: Target, whole: Tensor) -> Tensor:
        """Return the video's part of the mean cross entropy of all snippets and classes."""
        logits = self.head(self.projection(features))
        loss = functional.binary_cross_entropy_with_logits(logits, target.labels, reduction="sum")
        return loss / whole.numel()

    def scores(self, features: Tensor, target: Target) -> tuple[Tensor, Tensor]:
        """Return the probability of each class for each snippet."""
        return self.head(self.projection(features)).sigmoid(), target.labels > 0.5
