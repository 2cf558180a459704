"""The fixed steps between encoders and temporal network, as torch computes and differentiates them.

They are those of the features stage: principal components and scales, fitted once on the features
of the untuned encoders over the training videos, and the rescaling to equal steps. Fitted on
features.h5 instead, they would depend on what they are meant to feed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float32, Float64, Int64
from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import rescale
from actionspan.features.transform import Moments, Transform, fit_stream


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

    Args:
        transform: Of which grid, length and method are used.
        times: (T,) snippet centres in seconds.
        duration: Of the video in seconds.
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
    """Fit each stream's transform on the training videos' features, as `features rescale` does.

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
