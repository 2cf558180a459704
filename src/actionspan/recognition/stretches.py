"""Which stretches of untrimmed videos are clips: instances, and background between them.

Videos of the data set's own validation and testing subsets are never used; some of the training
videos are held out to validate the classifiers.

Background is what lies further than a margin from every instance. It is cut into stretches no
longer than a typical instance, so that the length of a clip says nothing about its class.
"""

import itertools
import math
import statistics
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan.dataset.tables import Annotation
from actionspan.errors import InputError
from actionspan.recognition.clip_lists import held_out_names, stable_hash
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.recognition.clip_store import BACKGROUND

_AMBIGUOUS = "Ambiguous"  # THUMOS14's label of what may or may not be an action


class Segment(NamedTuple):
    """A stretch of a video in seconds, the end not included, and its class."""

    start: float
    end: float
    label: str


def subsets_of_videos(annotations: Collection[Annotation], fraction: float) -> dict[str, str]:
    """Return training or validation for each training video of the data set.

    A `fraction` of them is held out, by a hash of their ids.
    """
    names = [video.video_id for video in annotations if video.subset == "training"]
    held_out = set(held_out_names(names, fraction))
    return {name: "validation" if name in held_out else "training" for name in names}


def typical_seconds(annotations: Collection[Annotation]) -> float:
    """Return the median length of the training videos' instances in seconds.

    Raises:
        InputError: They have none.
    """
    training = [video for video in annotations if video.subset == "training"]
    lengths = [end - start for video in training for start, end, _ in _instances(video)]
    if not lengths:
        raise InputError("no training video has an instance: there is nothing to recognise")
    return statistics.median(lengths)


def video_segments(video: Annotation, longest: float, settings: ClipSettings) -> list[Segment]:
    """Return the clips of a video in order of time: each instance, and background between them.

    A stretch of background has `longest` seconds at most; the settings say how far from instances
    it is, and how much there is.
    """
    instances = _instances(video)
    if not settings.background:
        return sorted(instances)
    stretches = []
    for begin, end in _gaps(video, settings.background_margin):
        parts = math.ceil((end - begin) / longest)
        edges = np.linspace(begin, end, parts + 1).tolist()
        stretches += [Segment(*pair, BACKGROUND) for pair in itertools.pairwise(edges)]
    most = settings.background_ratio * max(1, len(instances))
    if len(stretches) > most:
        # by chance, but always the same ones
        stretches.sort(key=lambda segment: stable_hash(video.video_id, f"{segment.start:.6f}"))
        stretches = stretches[: max(1, round(most))]
    return sorted(instances + stretches)


def rows_of_segment(segment: Segment, seconds: Float64) -> tuple[int, ...]:
    """Return the snippets whose centre lies in a segment.

    An instance too short to hold one has the snippet nearest to its middle, if the middle is no
    further from it than half the usual distance of snippets; a stretch of background has none.
    `seconds` are the (T,) times of the snippets' centres, rising.
    """
    inside = np.flatnonzero((seconds >= segment.start) & (seconds < segment.end))
    if len(inside) or segment.label == BACKGROUND:
        return tuple(inside.tolist())
    middle = (segment.start + segment.end) / 2
    nearest = int(np.abs(seconds - middle).argmin())
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else math.inf
    return (nearest,) if abs(seconds[nearest] - middle) <= step / 2 else ()


def _instances(video: Annotation) -> list[Segment]:
    return [
        Segment(instance.start, instance.end, instance.label)
        for instance in video.instances
        if instance.label != _AMBIGUOUS
    ]


def _gaps(video: Annotation, margin: float) -> Iterator[tuple[float, float]]:
    """Yield begin and end of what lies further than `margin` from every instance in seconds."""
    begin = 0.0
    for instance in sorted(video.instances, key=lambda instance: instance.start):
        if instance.start - margin > begin:
            yield begin, instance.start - margin
        begin = max(begin, instance.end + margin)
    if video.duration_seconds > begin:
        yield begin, video.duration_seconds
