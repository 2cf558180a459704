"""Cues of change: curves that say where a video stops looking as it did before, without training.

For k = 1, 2, 4 and 8 the change at the edge between two snippets is the distance between the mean
features of the k snippets before and of the k after it; a snippet's is the mean of its two edges.
Networks trained on few videos do not find this comparison themselves.
"""

from collections.abc import Mapping

import numpy as np

from actionspan.arrays import Float32

REACHES = (1, 2, 4, 8)  # snippets
_WEIGHT = 2.0  # deviation of a cue; that of the features is near 1
_LEAST_CHANGE = 0.1  # about the change between two snippets of a still scene
_LEAST_MOTION = 1e-3  # below the smallest motion, in the units of both curves


def change(features: Float32, ahead: int = max(REACHES)) -> Float32:
    """Return the change (T, 4) of features (T, C) over each of `REACHES`.

    The side after an edge has no more than `ahead` snippets, so that a snippet's change depends on
    no more than so many behind it.
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

    Args:
        streams: (T, C) transformed features of each of S streams.
        motion: (T,) of each of M curves of motion, 0 or more; their logarithms are cues.
    """
    found = [change(features) for features in streams.values()]
    found += [_logarithm(motion[key]) for key in sorted(motion)]
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

    A row depends on no more than `ahead` snippets behind it; the arguments are those of `cues`.
    """
    found = [
        np.log(change(features, ahead) + np.float32(_LEAST_CHANGE)) for features in streams.values()
    ]
    return np.concatenate([*found, *(_logarithm(motion[key]) for key in sorted(motion))], axis=1)


def _logarithm(curve: Float32) -> Float32:
    logarithm: Float32 = np.log(np.maximum(curve, 0) + np.float32(_LEAST_MOTION))[:, None]
    return logarithm
