"""Training data of the evaluator: candidates, how well each fits the truth, balanced samples."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.arrays import Float32, Float64, Int64, temporal_iou
from actionspan.proposals.candidates import CandidateTable
from actionspan.proposals.evaluator import BOUNDARY_INPUTS, boundary_inputs, to_seconds
from actionspan.proposals.settings import EvaluatorSettings
from actionspan.storage.scratch import scratch


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Candidates to train on."""

    features: Float32  # (R, 32), an array or a memory map, of all candidates
    rows: Int64  # (M,) of them that belong here
    targets: Float64  # (M,) each example's best tIoU with the truth
    more: Float32 | None = None  # (M, E) further inputs of each

    def fingerprint(self) -> str:
        """Return a hash of all but `features`, which have the digest of their file."""
        content = hashlib.sha256()
        for array in (self.rows, self.targets, self.more):
            if array is not None:
                content.update(np.ascontiguousarray(array).data)
        return content.hexdigest()

    @property
    def inputs(self) -> int:
        """How many numbers of a candidate the evaluator sees."""
        more = 0 if self.more is None else self.more.shape[1]
        return int(self.features.shape[1] + more)


def best_overlap(segments: ArrayLike, truth: ArrayLike) -> Float64:
    """Return the highest tIoU (M,) of segments (M, 2) with any of the truth (G, 2); 0 if G is 0."""
    best: Float64 = temporal_iou(segments, truth).max(axis=1, initial=0)
    return best


def examples_of(
    table: CandidateTable,
    truth: Mapping[str, ArrayLike],
    subset: str,
    limit: int,
    boundary_scores: bool = False,
) -> Examples:
    """Return the best candidates, at most `limit`, of each video of a subset with their targets.

    `truth` has the (G, 2) segments of each annotated video in seconds; a video without annotations
    is left out. With `boundary_scores`, p_start, p_end and the length are further inputs.
    """
    used = [
        index
        for index, video_id in enumerate(table.video_id)
        if table.subset[index] == subset and video_id in truth
    ]
    counts = np.minimum(np.diff(table.offsets)[used], limit)
    total = int(counts.sum())
    rows, targets = scratch((total,), np.int64), scratch((total,), np.float64)
    more = scratch((total if boundary_scores else 0, BOUNDARY_INPUTS), np.float32)
    end = 0
    for index, count in zip(used, counts.tolist(), strict=True):
        first, video_id = int(table.offsets[index]), table.video_id[index]
        place = slice(end, end + count)
        end = place.stop
        rows[place] = np.arange(first, first + count)
        segments, scores = (each[:count] for each in table.boundaries(index))
        seconds = to_seconds(segments, table.duration_seconds[index])
        targets[place] = best_overlap(seconds, truth[video_id])
        if boundary_scores:
            more[place] = boundary_inputs(scores, segments)
    return Examples(
        features=table.features, rows=rows, targets=targets, more=more if boundary_scores else None
    )


_CLASSES = 3
_CHUNK = 1 << 16  # candidates

Sample = NDArray[np.uint32] | NDArray[np.int64]


def sampling_rates(
    targets: Float64, settings: EvaluatorSettings, counts: Sequence[int] | None = None
) -> Float64:
    """Return the rate at which each candidate is sampled, so that the classes are balanced.

    High candidates (tIoU above `high_threshold`) are all taken; of the middle and of the low ones
    (below `low_threshold`) `middle_ratio` and `low_ratio` for each high one, or all there are.
    Where no candidate is high the middle ones replace them, and where none is middle either, all
    low ones are taken. Targets are the (M,) best tIoUs with the truth; rates (M,) are in 0…1, and
    not all 0 unless M is 0. `counts` are the `class_counts` of the set that the candidates are a
    part of; by default they are all of it.
    """
    rates = np.zeros(len(targets))
    known = class_counts(targets, settings) if counts is None else counts
    for number, rate in enumerate(_rates(known, settings)):
        rates[_is_class(number, targets, settings)] = rate
    return rates


def class_counts(targets: Float64, settings: EvaluatorSettings) -> list[int]:
    """Count the high, middle and low candidates."""
    counts = np.zeros(_CLASSES, np.int64)
    for rows in chunks(len(targets)):
        counts += [_is_class(number, targets[rows], settings).sum() for number in range(_CLASSES)]
    return counts.tolist()


def chunks(count: int) -> Iterator[slice]:
    """Yield slices of candidates that fit into memory."""
    for first in range(0, count, _CHUNK):
        yield slice(first, min(first + _CHUNK, count))


def balanced_sample(
    targets: Float64, settings: EvaluatorSettings, generator: np.random.Generator
) -> Sample:
    """Draw indexes of candidates at their rates, without repetition, in random order."""
    counts = class_counts(targets, settings)
    small = np.uint32 if len(targets) <= np.iinfo(np.uint32).max else np.int64
    taken = [
        max(round(rate * count), 1) if count else 0
        for rate, count in zip(_rates(counts, settings), counts, strict=True)
    ]
    sample = scratch((sum(taken),), small)
    end = 0
    for number, (count, share) in enumerate(zip(counts, taken, strict=True)):
        members, filled = scratch((count,), small), 0
        for rows in chunks(len(targets)):
            some = rows.start + _is_class(number, targets[rows], settings).nonzero()[0]
            members[filled : filled + len(some)] = some
            filled += len(some)
        generator.shuffle(members)
        sample[end : end + share] = members[:share]
        end += share
    generator.shuffle(sample)
    return sample


def _rates(counts: Sequence[int], settings: EvaluatorSettings) -> list[float]:
    unit, rates = 0.0, []  # how many candidates a ratio of 1 means
    for count, ratio in zip(counts, (1.0, settings.middle_ratio, settings.low_ratio), strict=True):
        unit = unit or (count / ratio if count else 0.0)
        rates.append(min(1.0, ratio * unit / count) if count else 0.0)
    return rates


def _is_class(number: int, targets: Float64, settings: EvaluatorSettings) -> NDArray[np.bool_]:
    """Return which candidates are high (0), middle (1) or low (2)."""
    high, low = targets > settings.high_threshold, targets < settings.low_threshold
    return (high, ~(high | low), low)[number]


class Sampler:
    """Draws a new sample for each epoch; its random numbers are part of a checkpoint."""

    def __init__(self, targets: Float64, settings: EvaluatorSettings) -> None:
        self.targets, self.settings = targets, settings
        self._generator = np.random.default_rng(settings.seed)

    def draw(self) -> Sample:
        """Return the next `balanced_sample`."""
        return balanced_sample(self.targets, self.settings, self._generator)

    def state(self) -> Any:
        """Return the state of the random numbers."""
        return self._generator.bit_generator.state

    def restore(self, state: Any) -> None:
        """Restore what `state` returned."""
        self._generator.bit_generator.state = state
