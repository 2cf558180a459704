"""Cues of change, without training: where a video stops looking as it did before.

For k = 1, 2, 4 and 8 the change at the edge between two snippets is the distance between the mean
features of the k snippets before and of the k after it; a snippet's is the mean of its two edges.
Networks trained on few videos do not find this comparison themselves.

For a stream, a row describes a snippet and its difference from the past. It is 1, then two
halves of the same kind: the features of all streams and their cues of change. The first half has
them as they are, the cues by their mean and deviation over the training videos. The second has
their difference to a running mean of the snippets so far, for cues in running deviations. So a
row depends on no snippet but the ones before it and `ahead` after it, however long the video is,
and a stream can be served row by row.

The running mean is over all snippets so far until there are `horizon` of them; then each new one
has a share of 1 / horizon. It begins as if `_BEFORE` average snippets of the training videos had
been seen, so that the first few snippets of a video are not taken for all that it shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from actionspan.arrays import Float32, Float64

REACHES = (1, 2, 4, 8)  # snippets
_WEIGHT = 2.0  # deviation of a cue; the features' is near 1
_LEAST_CHANGE = 0.1  # about the change between two snippets of a still scene
_BEFORE = 4
_LEAST_DEVIATION = 0.1  # of a cue, in deviations over the training videos
_LEAST_MOTION = 1e-3  # below the smallest motion, in the units of both curves


def change(features: Float32, ahead: int = max(REACHES)) -> Float32:
    """Return the change (T, 4) of features (T, C) over each of `REACHES`.

    The side after an edge has no more than `ahead` snippets, so that a snippet's change depends on
    at most that number behind it.
    """
    steps = len(features)
    sums = np.zeros((steps + 1, features.shape[1]))
    np.cumsum(features, axis=0, dtype=np.float64, out=sums[1:])
    edges = np.arange(steps + 1)
    curves = np.zeros((steps, len(REACHES)), np.float32)
    if steps < 2:
        return curves
    for column, reach in enumerate(REACHES):
        first = np.maximum(edges - reach, 0)
        last = np.minimum(edges + min(reach, ahead), steps)
        before = (sums[edges] - sums[first]) / np.maximum(edges - first, 1)[:, None]
        after = (sums[last] - sums[edges]) / np.maximum(last - edges, 1)[:, None]
        distance = np.sqrt(np.square(before - after).mean(axis=1))  # (T + 1,)
        distance[[0, -1]] = distance[[1, -2]]  # nothing lies beyond the ends
        curves[:, column] = (distance[:-1] + distance[1:]) / 2
    return curves


def cues(streams: Mapping[str, Float32], motion: Mapping[str, Float32]) -> Float32:
    """Return the cues of a video (T, 4 S + M), each of mean 0 and deviation 2 over the video.

    `streams` are (T, C) transformed features of each of S streams, `motion` (T,) of each of M
    curves of motion, 0 or more; their logarithms are cues.
    """
    found = [change(features) for features in streams.values()]
    found += [log_motion(motion[key]) for key in sorted(motion)]
    curves = np.concatenate(found, axis=1).astype(np.float64)
    centred = curves - curves.mean(axis=0)
    deviation = centred.std(axis=0)
    still = deviation <= 1e-6 * np.abs(curves).max(axis=0, initial=1.0)
    scaled: Float32 = (_WEIGHT * centred / np.where(still, np.inf, deviation)).astype(np.float32)
    return scaled


def causal_cues(
    streams: Mapping[str, Float32], motion: Mapping[str, Float32], ahead: int
) -> Float32:
    """Return the logarithms (T, 4 S + M) of the change of S streams and of M curves of motion.

    A row depends on no more than `ahead` snippets behind it; the arguments are as in `cues`.
    """
    changes = [change(features, ahead) for features in streams.values()]
    found = [np.log(curves + np.float32(_LEAST_CHANGE)) for curves in changes]
    found += [log_motion(motion[key]) for key in sorted(motion)]
    return np.concatenate(found, axis=1)


def log_motion(curve: Float32) -> Float32:
    """Return the logarithm (T, 1) of a curve of motion (T,), whatever its unit."""
    logarithm: Float32 = np.log(np.maximum(curve, 0) + np.float32(_LEAST_MOTION))[:, None]
    return logarithm


@dataclass(frozen=True, kw_only=True)
class Past:
    """The state of the rows of a stream: two numbers of snippets, and moments of the cues.

    `mean` and `deviation` are (Q,), over the training videos.
    """

    horizon: int
    ahead: int
    mean: Float32
    deviation: Float32


class _RunningMoments:
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
    """Return the rows (T, 1 + 2 (D + Q)) of a video, with D features of all streams and Q cues.

    The arguments are as in `cues`.
    """
    cues = causal_cues(streams, motion, past.ahead)
    features = _side_by_side(streams, len(cues))
    moments = _RunningMoments(features.shape[1], cues.shape[1], past.horizon)
    return np.stack([_row(*each, past, moments) for each in zip(features, cues, strict=True)])


def _side_by_side(streams: Mapping[str, Float32], rows: int) -> Float32:
    return np.concatenate([np.zeros((rows, 0), np.float32), *streams.values()], axis=1)


def _row(features: Float32, cues: Float32, past: Past, moments: _RunningMoments) -> Float32:
    standard = (cues.astype(np.float64) - past.mean) / past.deviation
    centred = moments.centre(features, standard)
    values = np.concatenate([features, _WEIGHT * standard, centred])
    row: Float32 = np.concatenate([np.ones(1), values]).astype(np.float32)
    return row


class PastStream:
    """The rows of `past_rows`, one by one, as soon as the snippets that they need are seen."""

    def __init__(self, past: Past) -> None:
        self.past = past
        self._kept = max(REACHES) + 1 + past.ahead  # snippets that a row's cues depend on, and it
        self._streams: dict[str, Float32] = {}
        self._motion: dict[str, Float32] = {}
        self._moments: _RunningMoments | None = None
        self._waiting = 0  # snippets at the end that have no row yet

    def add(self, streams: Mapping[str, Float32], motion: Mapping[str, float]) -> Float32:
        """Count a snippet, with (C,) transformed features of each stream and a value of each curve.

        Returns the rows (N, C) that are complete, none or one.
        """
        self._keep(self._streams, streams)
        self._keep(self._motion, motion)
        self._waiting += 1
        return self._rows(self._waiting - self.past.ahead)

    def finish(self) -> Float32:
        """Return the rows (N, C) of the last snippets: no other follows."""
        return self._rows(self._waiting)

    def _keep(self, held: dict[str, Float32], given: Mapping[str, Float32 | float]) -> None:
        for key, value in given.items():
            new = np.array(value, np.float32)[None]
            held[key] = np.concatenate([held[key], new])[-self._kept :] if key in held else new

    def _rows(self, count: int) -> Float32:
        """Return the rows of the first `count` of the snippets that wait."""
        if count <= 0:
            return np.zeros((0, 0), np.float32)
        cues = causal_cues(self._streams, self._motion, self.past.ahead)
        features = _side_by_side(self._streams, len(cues))
        if self._moments is None:
            shape = features.shape[1], cues.shape[1]
            self._moments = _RunningMoments(*shape, self.past.horizon)
        first = len(features) - self._waiting
        places = range(first, first + count)
        self._waiting -= count
        return np.stack([_row(features[k], cues[k], self.past, self._moments) for k in places])

    def state_dict(self) -> dict[str, Any]:
        """Return the state from which another stream can resume."""
        found, moments = self._moments, None
        if found is not None:
            kept = {"mean": found.mean.copy(), "square": found.square.copy()}
            moments = {"count": found.count, **kept}
        return {
            "streams": dict(self._streams),
            "motion": dict(self._motion),
            "waiting": self._waiting,
            "moments": moments,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state."""
        self._streams, self._motion = dict(state["streams"]), dict(state["motion"])
        self._waiting, self._moments = state["waiting"], None
        if state["moments"] is not None:
            kept = state["moments"]
            cues = len(kept["square"])
            self._moments = _RunningMoments(len(kept["mean"]) - cues, cues, self.past.horizon)
            self._moments.count = kept["count"]
            self._moments.mean = np.array(kept["mean"])
            self._moments.square = np.array(kept["square"])
