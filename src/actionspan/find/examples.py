"""Search by example: the segments of videos that are most like a few marked ones.

A segment is described by the mean features of its thirds and of half its length before and behind:
the principal components of each stream, without its median in the video, which is the scene, and
the logarithms of both curves of motion, standardised in the video. Similarity is the cosine to the
mean of the examples, as seen from the mean segment of all videos, after whitening by the covariance
of all their segments (Hariharan, Malik and Ramanan, 2012), shrunk towards none. How much is chosen
by leaving one example out: each should be among the first that the others find.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actionspan.annotations.tables import Instance
from actionspan.arrays import Float32, Float64
from actionspan.features.collect import MOTION
from actionspan.features.cues import log_motion
from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import rescale
from actionspan.features.transform import Moments, fit_transform
from actionspan.proposals.lattice import lattice
from actionspan.proposals.selection import shares_much
from actionspan.proposals.settings import EventSettings, LatticeSettings
from actionspan.review.footage import Encoded

_COMPONENTS = 32  # of each stream
PARTS = 3  # of a segment
LATTICE = LatticeSettings(ratio=1.25, stride=0.2, pairs=0)
_ROOM = (0.6, 1.6)  # of the shortest and the longest example: lengths that are looked at
SHRINKAGE = (0.05, 0.2, 0.5, 0.8, 1.0)  # 1: not whitened, a prototype
_OF_ONE = 0.5  # of a single example, chosen on rendered videos
SAMPLE = 5000  # segments that an example is ranked among
_BLOCK = 4096  # segments described at once
_LEAST = 0.25  # steps that a mean is taken over


class Similar(NamedTuple):
    """The segments (N, 2) of a video in seconds, and how similar each is, −1…1."""

    segments: Float64
    scores: Float64


class Footage:
    """Videos as sequences of steps (T, D), of which an hour takes 5 MB."""

    def __init__(self, videos: Sequence[Encoded]) -> None:
        self.videos = {one.video.video_id: one for one in videos}
        settings = RescaleSettings(grid="windows", steps=1, stride=1, components=_COMPONENTS)

        def read(one: Encoded) -> tuple[Mapping[str, Float32], Float64, float]:
            raw, facts = one.read()
            return _without_scene(raw), facts["time"], one.video.duration_seconds

        self.transform = fit_transform(settings, map(read, videos))
        self._sequences: dict[str, tuple[Float32, float]] = {}

    def sequence(self, name: str) -> tuple[Float32, float]:
        """Return the steps (T, D) of a video, and the seconds of each; they stay in memory."""
        if name not in self._sequences:
            self._sequences[name] = self.read_sequence(name)
        return self._sequences[name]

    def steps(self, name: str) -> int:
        """Return how many steps a video has."""
        one = self.videos[name]
        return self.transform.length(one.facts()["time"], one.video.duration_seconds)

    def read_sequence(self, name: str) -> tuple[Float32, float]:
        """Return `sequence` without keeping it."""
        one = self.videos[name]
        raw, facts = one.read()
        raw, times, seconds = _without_scene(raw), facts["time"], one.video.duration_seconds
        steps = self.transform.length(times, seconds)
        parts: list[Float32] = []
        for stream, fitted in self.transform.streams.items():
            even = fitted.apply(rescale(raw[stream], times, seconds, steps, "nearest"))
            parts.append(even / np.sqrt(even.shape[1]))
        for key in MOTION:
            if key in facts:
                even = rescale(facts[key], times, seconds, steps, "nearest", motion=True)
                curve = log_motion(even)
                parts.append((curve - curve.mean()) / (curve.std() + 1e-6))
        return np.concatenate(parts, axis=1).astype(np.float32), seconds / steps

    def described(self, shortest: float, longest: float) -> Iterator[tuple[str, Float64, Float64]]:
        """Yield segments (N, 2) of each video in seconds, and their descriptions (N, D), in blocks.

        Each video has one block or more.
        """
        for name in self.videos:
            steps, seconds = self.sequence(name)
            cells = lattice(len(steps), shortest / seconds, longest / seconds, LATTICE)
            for first in range(0, len(cells), _BLOCK):
                block = cells[first : first + _BLOCK]
                yield name, block * seconds, describe(steps, block)


def _without_scene(raw: Mapping[str, Float32]) -> dict[str, Float32]:
    return {key: rows - np.median(rows, axis=0).astype(np.float32) for key, rows in raw.items()}


def describe(
    steps: Float32, cells: Float64, inside: tuple[Float64, Float64] | None = None
) -> Float64:
    """Return what segments (N, 2), in steps, show of (T, D) steps: (N, (PARTS + 2) · D).

    `inside` are the first and the last place (N,) of the video of each segment, where the steps are
    of several.
    """
    start, end = cells.T
    length = end - start
    edges = [start - length / 2, *(start + length * part / PARTS for part in range(PARTS + 1))]
    edges.append(end + length / 2)
    total = np.cumsum(steps, axis=0, dtype=np.float64)
    sums = np.concatenate([np.zeros((1, steps.shape[1])), total])

    def below(places: Float64) -> Float64:
        floor = np.minimum(places.astype(np.int64), len(steps) - 1)
        share = (places - floor)[:, None]
        found: Float64 = sums[floor] * (1 - share) + sums[floor + 1] * share
        return found

    edges = [np.clip(edge, *(inside or (0, len(steps)))) for edge in edges]
    means = [
        (below(last) - below(first)) / np.maximum(last - first, _LEAST)[:, None]
        for first, last in zip(edges[:-1], edges[1:], strict=True)
    ]
    return np.concatenate(means, axis=1)


class Likeness:
    """How like the examples segments are, by their descriptions."""

    def __init__(self, mean: Float64, covariance: Float64) -> None:
        self.mean = mean
        values, self.vectors = np.linalg.eigh(covariance)
        self.values = np.maximum(values, 0)
        self.shrinkage = _OF_ONE
        self.target = np.zeros(len(values))

    def fit(self, examples: Float64, sample: Float64) -> None:
        """Choose the shrinkage by examples (K, D), each ranked among a sample (N, D)."""
        if len(examples) > 1:
            losses = [self._loss(examples, sample, shrinkage) for shrinkage in SHRINKAGE]
            self.shrinkage = SHRINKAGE[int(np.argmin(losses))]
        self.target = self._white(examples, self.shrinkage).mean(axis=0)

    def __call__(self, described: Float64) -> Float64:
        """Return the similarity (N,) of descriptions (N, D)."""
        return _cosine(self._white(described, self.shrinkage), self.target)

    def scale(self, shrinkage: float) -> Float64:
        """Return the deviation (D,) by which each of the `vectors` is divided."""
        found: Float64 = np.sqrt(
            (1 - shrinkage) * self.values + shrinkage * self.values.mean() + 1e-12
        )
        return found

    def _white(self, described: Float64, shrinkage: float) -> Float64:
        whitened: Float64 = (described - self.mean) @ (self.vectors / self.scale(shrinkage))
        return whitened

    def _loss(self, examples: Float64, sample: Float64, shrinkage: float) -> float:
        """Return the mean logarithm of the rank of each example by the others."""
        own, others = self._white(examples, shrinkage), self._white(sample, shrinkage)
        ranks = []
        for place in range(len(own)):
            target = np.delete(own, place, axis=0).mean(axis=0)
            before = _cosine(others, target) >= _cosine(own[place][None], target)
            ranks.append(1 + before.sum())
        return float(np.log(ranks).mean())


def _cosine(rows: Float64, target: Float64) -> Float64:
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(target)
    found: Float64 = rows @ target / np.maximum(norms, 1e-12)
    return found


def find_like(footage: Footage, examples: Mapping[str, Sequence[Instance]]) -> dict[str, Similar]:
    """Return how like the examples the other segments of each video are.

    Args:
        footage: All videos, including the examples'.
        examples: Marked segments by video; at least one, of any label.
    """
    room = room_of(examples)
    # what segments are like in general
    moments: Moments | None = None
    sample, each = [], max(1, SAMPLE // len(footage.videos))
    for _, _, described in footage.described(*room):
        moments = moments or Moments(described.shape[1])
        moments.add(described.astype(np.float32))
        sample.append(described[:: max(1, len(described) // each)])
    assert moments is not None
    # and the examples
    rows = []
    for name, own in examples.items():
        if own:
            steps, seconds = footage.sequence(name)
            cells = np.array([(one.start, one.end) for one in own]) / seconds
            rows.append(describe(steps, cells))
    likeness = Likeness(moments.mean, moments.covariance)
    likeness.fit(np.concatenate(rows), np.concatenate(sample))
    found: dict[str, list[Similar]] = {}
    for name, segments, described in footage.described(*room):
        new = unmarked(segments, examples.get(name, ()))
        found.setdefault(name, []).append(Similar(segments[new], likeness(described[new])))
    return {
        name: Similar(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
        for name, blocks in found.items()
    }


def room_of(
    examples: Mapping[str, Sequence[Instance]], share: tuple[float, float] = _ROOM
) -> tuple[float, float]:
    """Return the shortest and the longest length, in seconds, that is looked at."""
    lengths = [one.end - one.start for own in examples.values() for one in own]
    return min(lengths) * share[0], max(lengths) * share[1]


def unmarked(segments: Float64, marks: Sequence[Instance]) -> NDArray[np.bool_]:
    """Return which segments (N, 2) are not much the same as a marked one."""
    marked = np.array([(one.start, one.end) for one in marks]).reshape(-1, 2)
    shared: NDArray[np.bool_] = shares_much(segments, marked, EventSettings().overlap)
    return np.logical_not(shared.any(axis=1))


def marked(
    instances: Mapping[str, Sequence[Instance]], labels: Collection[str] = ()
) -> dict[str, dict[str, list[Instance]]]:
    """Return marked segments by label and video, of these labels or of all."""
    found: dict[str, dict[str, list[Instance]]] = {}
    for name, own in instances.items():
        for one in own:
            if not labels or one.label in labels:
                found.setdefault(one.label or "", {}).setdefault(name, []).append(one)
    return dict(sorted(found.items()))
