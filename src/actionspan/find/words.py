"""Search by words: the segments with the frames nearest to a text.

Images and texts are vectors of one space. A step of a video is as near as the mean cosine to all
wordings, less that to wordings of nothing in particular, less the median of this in the video:
anything in view all the time is not found. Over all videos it is divided by its median deviation.
The excess over one deviation, added up over a segment, is the segment's evidence: it is highest
where the segment ends with its content.
"""

from collections.abc import Iterable

import numpy as np

from actionspan.arrays import Float32
from actionspan.features.steps import rescale
from actionspan.features.transform import Transform
from actionspan.find.examples import LATTICE, Similar, describe
from actionspan.proposals.lattice import lattice
from actionspan.propose.labels import WordModel
from actionspan.review.footage import Encoded

BACKGROUND = ("a photo", "a video", "a scene in which nothing happens")
_LENGTHS = (1.0, 60.0)  # seconds
_LONG = 5.0  # seconds from which a longer segment has no more evidence
_HALF = 3.0  # evidence that makes a score of 1/2
_EVEN = Transform(steps=1, method="nearest", streams={}, grid="windows", stride=1)


def even_rows(one: Encoded, model: WordModel) -> tuple[Float32, float]:
    """Return the vectors (T, D) of a video at T even steps, and the seconds of each."""
    raw, facts = one.read()
    times, seconds = facts["time"], one.video.duration_seconds
    steps = _EVEN.length(times, seconds)
    return rescale(model.of(raw), times, seconds, steps, "nearest"), seconds / steps


def find_words(
    rows: Iterable[tuple[str, Float32, float]], wanted: Float32, background: Float32
) -> dict[str, Similar]:
    """Return the segments of each video, and how near they are to words, 0…1.

    Args:
        rows: Videos, each by its name, the vectors (T, D) of its images and the seconds of each.
        wanted: (N, D) unit vectors of wordings of the search.
        background: (M, D) unit vectors of wordings of nothing in particular.
    """
    direction = wanted.mean(axis=0) - background.mean(axis=0)
    near: dict[str, tuple[Float32, float]] = {}
    for name, vectors, seconds in rows:
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        cosine = unit @ direction
        near[name] = cosine - np.float32(np.median(cosine)), seconds
    every = np.abs(np.concatenate([curve for curve, _ in near.values()]))
    deviation = np.float32(1.4826 * np.median(every) + 1e-12)
    return {name: _segments(curve / deviation, seconds) for name, (curve, seconds) in near.items()}


def _segments(curve: Float32, seconds: float) -> Similar:
    cells = lattice(len(curve), _LENGTHS[0] / seconds, _LENGTHS[1] / seconds, LATTICE)
    means = describe(curve[:, None], cells)  # before, inside, behind
    stands_out = means[:, 1:-1].mean(axis=1) - means[:, [0, -1]].mean(axis=1)
    length = np.minimum((cells[:, 1] - cells[:, 0]) * seconds, _LONG)
    evidence = np.maximum(stands_out, 0) * np.sqrt(length)
    return Similar(cells * seconds, evidence / (evidence + _HALF))
