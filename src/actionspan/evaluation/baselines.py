"""Baselines: proposals made by simpler means, which every method has to beat."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.dataset.tables import Annotation
from actionspan.settings import Checked, option

METHODS = ("random", "sliding", "difference", "tag")
SCALE_STEP = 2**0.5
NO_LENGTHS: Float64 = np.empty(0)

Proposals = tuple[Float64, Float64]
"""(P, 2) starts and ends in seconds, and (P,) scores, best first."""


@dataclass(frozen=True, kw_only=True)
class BaselineSettings(Checked):
    """How the baselines make proposals, and how many."""

    proposals: int = option(100, "most proposals of a video", least=1, most=100_000)
    seed: int = option(1, "seed of the random proposals", least=0)
    overlap: float = option(
        0.6, "share that neighbouring sliding windows have in common", least=0, most=0.95
    )
    shortest_window: float = option(
        0.02, "shortest sliding window, as a share of the video", least=0.001, most=1
    )
    window_prior: Literal["training", "none"] = option(
        "training", "order of the windows: by the lengths of training instances, or none"
    )


def random_proposals(video_id: str, duration: float, settings: BaselineSettings) -> Proposals:
    """Draw segments with uniform centres and lengths, cut at the video's ends, in random order.

    A video's proposals depend only on the seed, its id and its duration. Without the cut, as in
    ActivityNet's own notebook, they score an AUC of 45.0 there; the cut lifts it to 48.7.
    """
    word = int.from_bytes(hashlib.sha256(video_id.encode()).digest()[:8], "little")
    generator = np.random.default_rng([settings.seed, word])
    centre, half = generator.uniform(0, duration, (2, settings.proposals)) * [[1.0], [0.5]]
    scores = np.sort(generator.uniform(size=settings.proposals))[::-1]
    segments = np.clip(np.stack([centre - half, centre + half], axis=1), 0, duration)
    return segments, scores


def sliding_windows(
    duration: float, training_lengths: Float64, settings: BaselineSettings
) -> Proposals:
    """Return windows of many lengths, the lengths first that should find the most per window.

    Window lengths go down from the full video by factors of √2. A length's worth is the share
    of training instances that are closest to it, over the number of windows it takes to cover
    the video. Windows of one length are ordered so that any first few are spread evenly.

    Args:
        duration: Of the video, in seconds.
        training_lengths: Lengths of the training instances as shares of their videos; with none,
            every window length counts for the same share.
        settings: Number, overlap and shortest length of the windows.
    """
    steps = int(np.floor(np.log(settings.shortest_window) / -np.log(SCALE_STEP) + 1e-9)) + 1
    lengths = SCALE_STEP ** -np.arange(steps, dtype=np.float64)
    usual = training_lengths[(training_lengths > 0) & (training_lengths <= 1)]
    nearest = np.rint(-np.log(usual) / np.log(SCALE_STEP)).astype(np.int64).clip(0, steps - 1)
    # An additional instance of each length, so that a small training set rules out none.
    prior = np.bincount(nearest, minlength=steps) + 1.0
    segments, worth, turn = [], [], []
    for length, share in zip(lengths, prior / prior.sum(), strict=True):
        count = int(np.ceil((1 - length) / (length * (1 - settings.overlap)) - 1e-9)) + 1
        start = np.linspace(0, 1 - length, count)
        segments.append(np.stack([start, start + length], axis=1))
        worth.append(np.full(count, share / count))
        turn.append(_spread_order(count))
    order = np.lexsort((np.concatenate(turn), -np.concatenate(worth)))[: settings.proposals]
    scores = 1 - np.arange(len(order)) / settings.proposals
    return np.concatenate(segments)[order] * duration, scores


def _spread_order(count: int) -> Int64:
    """Return each place's turn when `count` places are visited evenly (bit-reversed order)."""
    bits = max(1, (count - 1).bit_length())
    reversed_bits = [int(f"{place:0{bits}b}"[::-1], 2) for place in range(count)]
    return np.argsort(np.argsort(reversed_bits))


def relative_lengths(annotations: Sequence[Annotation]) -> Float64:
    """Return the lengths of the training instances as shares of their videos' durations."""
    return np.array(
        [
            (instance.end - instance.start) / video.duration_seconds
            for video in annotations
            if video.subset == "training"
            for instance in video.instances
        ],
        dtype=np.float64,
    )
