"""Rows of features for a stream: what a snippet shows, and how that differs from the past.

A row is 1, then two halves of the same form: the features of all streams and their cues of change.
The first half has them as they are, the cues by their mean and deviation over the training videos.
The second has their difference to a running mean of the snippets so far; that of cues in running
deviations. So a row depends on no snippet but those before and `ahead` behind it, however long the
video is, and a stream can be served row by row.

The running mean is that of all snippets so far until there are `horizon` of them; then each new one
has a share of 1 / horizon. It begins as if `_BEFORE` average snippets of the training videos had
been seen, so that the first few snippets of a video are not taken for all that it shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from actionspan.arrays import Float32, Float64
from actionspan.features.cues import REACHES, causal_cues

_BEFORE = 4
_LEAST_DEVIATION = 0.1  # of a cue, in deviations over the training videos
_WEIGHT = 2.0  # deviation of a cue, as in `features.cues`


@dataclass(frozen=True, kw_only=True)
class Past:
    """What the rows of a stream need to know: two numbers of snippets, and moments of the cues.

    `mean` and `deviation` are (Q,), over the training videos.
    """

    horizon: int
    ahead: int
    mean: Float32
    deviation: Float32


class RunningMoments:
    """The running mean of features and cues, and the running deviation of cues."""

    def __init__(self, features: int, cues: int, horizon: int) -> None:
        self.horizon = horizon
        self.count = _BEFORE
        self.mean = np.zeros(features + cues)
        self.square = np.ones(cues)  # of the cues
        self._features = features

    def centre(self, features: Float32, cues: Float64) -> Float64:
        """Count a snippet's features (D,) and standardised cues (Q,); return both centred."""
        self.count = min(self.count + 1, self.horizon)
        values = np.concatenate([features, cues])
        self.mean += (values - self.mean) / self.count
        self.square += (cues * cues - self.square) / self.count
        centred = values - self.mean
        variance = self.square - np.square(self.mean[self._features :])
        deviation = np.sqrt(np.maximum(variance, _LEAST_DEVIATION**2))
        centred[self._features :] *= _WEIGHT / deviation
        return centred


def past_rows(streams: Mapping[str, Float32], motion: Mapping[str, Float32], past: Past) -> Float32:
    """Return the rows (T, 1 + 2 (D + Q)) of a video.

    Args:
        streams: (T, C) transformed features of each stream, D of all.
        motion: (T,) of each curve of motion.
        past: Horizon, snippets ahead and moments.
    """
    features: Float32 = np.concatenate(list(streams.values()), axis=1)
    cues = causal_cues(streams, motion, past.ahead)
    moments = RunningMoments(features.shape[1], cues.shape[1], past.horizon)
    return np.stack([_row(*each, past, moments) for each in zip(features, cues, strict=True)])


def _row(features: Float32, cues: Float32, past: Past, moments: RunningMoments) -> Float32:
    standard = (cues.astype(np.float64) - past.mean) / past.deviation
    centred = moments.centre(features, standard)
    values = np.concatenate([features, _WEIGHT * standard, centred])
    row: Float32 = np.concatenate([np.ones(1), values]).astype(np.float32)
    return row


class PastStream:
    """The rows of `past_rows`, one by one: each is given when the snippets that it needs are seen.

    Args:
        past: Horizon, snippets ahead and moments.
    """

    def __init__(self, past: Past) -> None:
        self.past = past
        self._kept = max(REACHES) + 1 + past.ahead  # snippets that a row's cues depend on, and it
        self._streams: dict[str, Float32] = {}
        self._motion: dict[str, Float32] = {}
        self._moments: RunningMoments | None = None
        self._waiting = 0  # snippets at the end that have no row yet

    def add(self, streams: Mapping[str, Float32], motion: Mapping[str, float]) -> Float32:
        """Count a snippet; return the rows (N, C) that are complete, none or one.

        Args:
            streams: (C,) transformed features of each stream.
            motion: Of each curve.
        """
        new = {key: values[None].astype(np.float32) for key, values in streams.items()}
        curves = {key: np.array([value], np.float32) for key, value in motion.items()}
        self._keep(self._streams, new)
        self._keep(self._motion, curves)
        self._waiting += 1
        return self._rows(self._waiting - self.past.ahead)

    def finish(self) -> Float32:
        """Return the rows (N, C) of the last snippets: no other follows."""
        return self._rows(self._waiting)

    def _keep(self, held: dict[str, Float32], given: Mapping[str, Float32]) -> None:
        for key, values in given.items():
            both = [held[key], values] if key in held else [values]
            held[key] = np.concatenate(both)[-self._kept :]

    def _rows(self, count: int) -> Float32:
        """Return the rows of the first `count` of the snippets that wait."""
        if count <= 0:
            return np.zeros((0, 0), np.float32)
        features = np.concatenate(list(self._streams.values()), axis=1)
        cues = causal_cues(self._streams, self._motion, self.past.ahead)
        if self._moments is None:
            shape = features.shape[1], cues.shape[1]
            self._moments = RunningMoments(*shape, self.past.horizon)
        first = len(features) - self._waiting
        places = range(first, first + count)
        self._waiting -= count
        return np.stack([_row(features[k], cues[k], self.past, self._moments) for k in places])

    def state_dict(self) -> dict[str, Any]:
        """Return arrays and numbers with which another goes on."""
        moments = None
        if self._moments is not None:
            moments = {
                "count": self._moments.count,
                "mean": self._moments.mean.copy(),
                "square": self._moments.square.copy(),
            }
        return {
            "streams": dict(self._streams),
            "motion": dict(self._motion),
            "waiting": self._waiting,
            "moments": moments,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self._streams, self._motion = dict(state["streams"]), dict(state["motion"])
        self._waiting, self._moments = state["waiting"], None
        if state["moments"] is not None:
            kept = state["moments"]
            cues = len(kept["square"])
            self._moments = RunningMoments(len(kept["mean"]) - cues, cues, self.past.horizon)
            self._moments.count = kept["count"]
            self._moments.mean = np.array(kept["mean"])
            self._moments.square = np.array(kept["square"])
