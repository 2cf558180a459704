"""What encoders are tuned for: proposals from a whole video, or scores of each snippet as it comes.

An objective takes the features (T, C) of a video's snippets, knows its labels, and returns a loss.
Between the encoders and its temporal network are the fixed steps of the features stage: principal
components and scales, fitted once on the features of the untuned encoders over the training videos,
and the rescaling to equal steps. Fitted on features.h5 instead, they would depend on what they are
meant to feed.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.arrays import Float32, Float64, Int64
from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import cut_windows, merge_windows, rescale
from actionspan.features.transform import Moments, Transform, fit_stream
from actionspan.finetune.heads import CausalHead
from actionspan.finetune.videos import TunedVideo
from actionspan.temporal.labels import boundary_labels
from actionspan.temporal.networks import TemporalNetwork
from actionspan.temporal.settings import TemporalSettings

_ACTION = 1  # of start, action, end


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

    @property
    def channels(self) -> int:
        """The number K of features that come out."""
        return sum(self._buffer("matrix", number).shape[1] for number in range(len(self.widths)))

    def forward(self, features: Tensor) -> Tensor:
        """Project (T, C) features."""
        parts = [
            (part - self._buffer("mean", number)) @ self._buffer("matrix", number)
            for number, part in enumerate(torch.split(features, self.widths, dim=1))
        ]
        return torch.cat(parts, dim=1)

    def _buffer(self, name: str, number: int) -> Tensor:
        return self.get_buffer(f"{name}{number}")


class Resampling(nn.Module):
    """Rows (T, K) of a video's snippets to the rows (N, S, K) that a temporal network takes.

    It is `features.steps.rescale` of the identity matrix; windows pick the nearest snippets.
    `times` are the (T,) centres of the snippets, `duration` the video's, both in seconds.
    """

    rows: Tensor
    windows: Tensor

    def __init__(self, transform: Transform, times: Float64, duration: float) -> None:
        super().__init__()
        self.length = transform.length(times, duration)
        self.starts: Int64 = transform.starts(self.length)
        self.steps = transform.steps
        if transform.grid == "windows":
            numbers = np.arange(len(times), dtype=np.float32)
            rows = rescale(numbers, times, duration, self.length, "nearest")
            self.register_buffer("rows", torch.from_numpy(rows.astype(np.int64)))
        else:
            identity = np.eye(len(times), dtype=np.float32)
            weights = rescale(identity, times, duration, self.length, transform.method)
            self.register_buffer("rows", torch.from_numpy(weights))  # (steps, T)

    def forward(self, projected: Tensor) -> Tensor:
        """Rescale (T, K) rows and cut them into windows."""
        chosen = self.rows.dtype == torch.int64  # by number; else weights
        steps = projected[self.rows] if chosen else self.rows @ projected  # (L, K)
        beyond = max(0, int(self.starts[-1]) + self.steps - self.length)
        padded = nn.functional.pad(steps, (0, 0, 0, beyond))
        return torch.stack([padded[start : start + self.steps] for start in self.starts.tolist()])


def unfitted(settings: RescaleSettings, widths: Mapping[str, int]) -> Transform:
    """Return a transform of the shapes of `settings`, its streams fitted on nothing."""
    windows = settings.grid == "windows"
    streams = {}
    for name, width in widths.items():
        moments = Moments(width)
        moments.add(np.zeros((1, width), np.float32))
        components = min(settings.components, width)
        streams[name] = fit_stream(moments, components, settings.standardise)
    return Transform(
        steps=settings.steps,
        method="nearest" if windows else settings.method,
        grid=settings.grid,
        stride=settings.stride if windows else 0,
        rest=settings.rest if windows else 0,
        streams=streams,
    )


def fit_projection(
    features: Sequence[Float32],
    times: Sequence[Float64],
    durations: Sequence[float],
    settings: RescaleSettings,
    widths: Mapping[str, int],
) -> Transform:
    """Return the transform of the features stage, fitted on the features of some videos.

    Args:
        features: (T, C) of each video, its streams side by side.
        times: (T,) snippet centres of each, in seconds.
        durations: Of the videos in seconds.
        settings: Steps, components, scales.
        widths: Features of each stream, in order.
    """
    blank = unfitted(settings, widths)
    moments = {name: Moments(width) for name, width in widths.items()}
    cuts = np.cumsum(list(widths.values()))[:-1]
    for rows, places, seconds in zip(features, times, durations, strict=True):
        length = blank.length(places, seconds)
        even = rescale(rows, places, seconds, length, blank.method)
        for name, part in zip(widths, np.split(even, cuts, axis=1), strict=True):
            moments[name].add(part)
    fitted = {
        name: fit_stream(moments[name], min(settings.components, width), settings.standardise)
        for name, width in widths.items()
    }
    return replace(blank, streams=fitted)


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

        Features are (T, C); `whole` are the labels of all videos of the batch, one after another.
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

        def merged(rows: Tensor) -> Tensor:  # (N, S, 3) to (n, 1)
            action = rows[..., _ACTION, None].float().cpu().numpy()
            return torch.from_numpy(merge_windows(action, resampling.starts, resampling.length))

        return merged(self.temporal(self._rows(features, target))), merged(target.labels) > 0.5

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
