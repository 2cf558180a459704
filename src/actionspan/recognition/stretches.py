"""Which stretches of untrimmed videos are clips: instances, and background between them.

Videos of the data set's own validation and testing subsets are never looked at; of the training
videos a part is held out, whole videos, to validate the classifiers.

Background is what lies further than a margin from every instance. It is cut into stretches as long
as a typical instance at most, so that the length of a clip says nothing about its class.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actionspan.dataset.tables import Annotation
from actionspan.errors import InputError
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.recognition.clip_store import BACKGROUND
from actionspan.recognition.held_out import held_out_names, stable_hash

AMBIGUOUS = "Ambiguous"  # THUMOS14's label of what is neither an action nor none


class Segment(NamedTuple):
    """A stretch of a video in seconds, the end not included, and its class."""

    start: float
    end: float
    label: str


def subsets_of_videos(annotations: Sequence[Annotation], fraction: float) -> dict[str, str]:
    """Return training or validation for each training video of the data set.

    Args:
        annotations: Of the whole data set.
        fraction: Part of the training videos that is held out, by a hash of their ids.
    """
    names = [known.video_id for known in annotations if known.subset == "training"]
    held_out = set(held_out_names(names, fraction))
    return {name: "validation" if name in held_out else "training" for name in names}


def typical_seconds(annotations: Sequence[Annotation]) -> float:
    """Return the median length of the training videos' instances in seconds.

    Raises:
        InputError: They have none.
    """
    lengths = [
        instance.end - instance.start
        for known in annotations
        if known.subset == "training"
        for instance in known.instances
        if instance.label != AMBIGUOUS
    ]
    if not lengths:
        raise InputError("no training video has an instance: there is nothing to recognise")
    return statistics.median(lengths)


def video_segments(known: Annotation, longest: float, settings: ClipSettings) -> list[Segment]:
    """Return the clips of a video in order of time: each instance, and background between them.

    Args:
        known: The video's annotation.
        longest: Of a stretch of background in seconds.
        settings: Whether there is background, how far from instances and how much of it.
    """
    instances = [
        Segment(instance.start, instance.end, instance.label)
        for instance in known.instances
        if instance.label != AMBIGUOUS
    ]
    if not settings.background:
        return sorted(instances)
    stretches = []
    for begin, end in _gaps(known, settings.background_margin):
        parts = math.ceil((end - begin) / longest)
        edges = np.linspace(begin, end, parts + 1).tolist()
        stretches += [Segment(*pair, BACKGROUND) for pair in itertools.pairwise(edges)]
    most = settings.background_ratio * max(1, len(instances))
    if len(stretches) > most:
        # by chance, but always the same ones
        stretches.sort(key=lambda one: stable_hash(known.video_id, f"{one.start:.6f}"))
        stretches = stretches[: max(1, round(most))]
    return sorted(instances + stretches)


def _gaps(known: Annotation, margin: float) -> Iterator[tuple[float, float]]:
    """Yield begin and end of what lies further than `margin` from every instance in seconds."""
    begin = 0.0
    for instance in sorted(known.instances, key=lambda one: one.start):
        if instance.start - margin > begin:
            yield begin, instance.start - margin
        begin = max(begin, instance.end + margin)
    if known.duration_seconds > begin:
        yield begin, known.duration_seconds


def rows_of_segment(segment: Segment, seconds: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the snippets whose centre lies in a segment.

    An instance too short to hold one has the snippet nearest to its middle, if the middle is no
    further from it than half the usual distance of snippets; a stretch of background has none.

    Args:
        segment: Start and end in seconds.
        seconds: (T,) times of the snippets' centres, rising.
    """
    inside = np.flatnonzero((seconds >= segment.start) & (seconds < segment.end))
    if len(inside) or segment.label == BACKGROUND:
        return tuple(inside.tolist())
    middle = (segment.start + segment.end) / 2
    nearest = int(np.abs(seconds - middle).argmin())
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else math.inf
    return (nearest,) if abs(seconds[nearest] - middle) <= step / 2 else ()
