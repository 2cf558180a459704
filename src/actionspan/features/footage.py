"""Which steps of different videos show the same footage.

Sets are spliced from clips that several videos share, and channels repeat their openings. Who
judges a network on videos that it left out has to know: it may have learned their twins.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Int64
from actionspan.features.store import UNSHARED

MOST_STEPS = 100_000  # compared with one another; that takes a minute on one core
FEWEST_FEATURES = 32  # with fewer, as of class scores, a high cosine shows what happens, not where
_BLOCK = 1024  # steps
_LEAST_NORM = 1e-12


def shared_footage(sequences: Sequence[Float32], similarity: float) -> list[Int64]:
    """Return of each video the footage that its steps show: a number of it, or `UNSHARED`.

    Sequences are (T, C) features, C being the same.

    Steps are linked where their features have a cosine above `similarity`: neighbours, and each
    with the nearest of the videos before its own and of those after. Neighbours are linked too
    where their nearest are neighbours in the same order: the footage continues. Linked steps,
    directly or by others, are the same footage; it is shared if it is in more than one video.

    Raises:
        ValueError: The videos have more than `MOST_STEPS` steps together.
    """
    from scipy.sparse import coo_matrix  # whoever applies a model does not need it
    from scipy.sparse.csgraph import connected_components

    lengths = [len(rows) for rows in sequences]
    steps = sum(lengths)
    if steps > MOST_STEPS:
        raise ValueError(f"{steps} steps are too many to compare: {MOST_STEPS} at most")
    ends = np.cumsum(lengths)
    video = np.repeat(np.arange(len(lengths)), lengths)  # (N,) of each step
    links = _links(np.concatenate(sequences), ends, similarity)
    graph = coo_matrix((np.ones(len(links)), links.T), shape=(steps, steps))
    count, footage = connected_components(graph, directed=False)
    first, last = np.full(count, len(lengths)), np.full(count, -1)
    np.minimum.at(first, footage, video)
    np.maximum.at(last, footage, video)
    found = np.where(first < last, np.arange(count), UNSHARED)[footage]
    return np.split(found.astype(np.int64), ends[:-1])


def _links(features: Float32, ends: Int64, similarity: float) -> Int64:
    """Return (L, 2) the steps that are linked, of the features (N, C) of all videos."""
    rows = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), _LEAST_NORM)
    links: list[NDArray[np.int64]] = []
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        going_on = (rows[begin : end - 1] * rows[begin + 1 : end]).sum(axis=1) > similarity
        for others in (slice(0, begin), slice(end, None)):
            if len(rows[others]):
                found = [
                    _nearest(rows[first : min(first + _BLOCK, end)], rows[others])
                    for first in range(begin, end, _BLOCK)
                ]
                cosines, twins = (np.concatenate(each) for each in zip(*found, strict=True))
                alike, twins = cosines > similarity, twins + (others.start or 0)
                links.append(np.column_stack([np.arange(begin, end), twins])[alike])
                going_on |= alike[:-1] & alike[1:] & (twins[1:] == twins[:-1] + 1)
        before = begin + np.flatnonzero(going_on)
        links.append(np.column_stack([before, before + 1]))
    return np.concatenate(links)


def _nearest(rows: Float32, others: Float32) -> tuple[Float32, Int64]:
    """Return the highest cosine (n,) of each row with the others, and the place of that one."""
    cosines = rows @ others.T
    return cosines.max(axis=1), cosines.argmax(axis=1)
