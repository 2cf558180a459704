"""Short rendered clips of one action each, or of none: what the transformers learn from.

Each clip has a scene, a person, a camera and perhaps motion of its own that is no action, so that a
few hundred clips show more than the videos of a data set that are cut into as many. They are drawn
by the demo's code at a few frames a second, with no file between.
"""

import random
from fractions import Fraction
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float32
from actionspan.demo.rendering import frames
from actionspan.demo.scenario import LABELS, Event, Shot, VideoPlan
from actionspan_papers.sbp.settings import TransformerSettings

CLASSES = (*LABELS, "background")
SECONDS = Fraction(12, 5)
"""Of a clip."""

_ACTION = 2.0  # seconds; the shortest fall
_SCENES = ("room", "street", "park", "hall")
_DISTRACTORS = ("pan", "object", "flicker", "light", "zoom")
_WIDTH, _HEIGHT = 160, 120  # of the rendered pictures; their middle square is kept
_SEEDS = {"training": 7, "validation": 8}


class Clips(NamedTuple):
    """(n, T, 2, S, S) grey pictures and their changes since the frame before, and (n,) classes."""

    inputs: Tensor
    labels: Tensor


def training_and_validation(settings: TransformerSettings) -> tuple[Clips, Clips]:
    """Render the clips to train on and those to score, on the scale of the former."""
    training = _render("training", settings.training_clips, settings)
    validation = _render("validation", settings.validation_clips, settings)
    mean = training.mean(axis=(0, 1))  # (S, S)
    spread = max(float((training - mean).std()), 1e-6)
    scale = np.float32(1 / spread)
    return _clips((training - mean) * scale), _clips((validation - mean) * scale)


def _clips(pictures: Float32) -> Clips:
    """Return clips whose classes go round, of (n, T, S, S) pictures."""
    still = torch.from_numpy(pictures)
    change = torch.zeros_like(still)
    change[:, 1:] = 2 * (still[:, 1:] - still[:, :-1])  # about as large as the pictures
    labels = torch.arange(len(still)) % len(CLASSES)
    return Clips(torch.stack([still, change], dim=2), labels)


def _render(subset: str, count: int, settings: TransformerSettings) -> Float32:
    """Return (n, T, S, S) pictures of 0 … 1."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        drawn = [
            _pictures(_plan(subset, index, settings.frames), settings) for index in range(count)
        ]
    finally:
        cv2.setNumThreads(threads)
    return np.stack(drawn).astype(np.float32) / np.float32(255)


def _pictures(plan: VideoPlan, settings: TransformerSettings) -> Float32:
    left = (_WIDTH - _HEIGHT) // 2
    size = settings.side, settings.side
    grey = (cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY) for picture in frames(plan))
    squares = (picture[:, left : left + _HEIGHT] for picture in grey)
    return np.stack([cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in squares])


def _plan(subset: str, index: int, count: int) -> VideoPlan:
    """Plan a clip: classes go round, all else is drawn."""
    kind = CLASSES[index % len(CLASSES)]
    rng = random.Random(f"clips of {subset} {index}")
    start = rng.uniform(0.05, float(SECONDS) - _ACTION - 0.05)
    actions = () if kind == "background" else (Event(kind, start, start + _ACTION),)
    distractors: tuple[Event, ...] = ()
    if rng.random() < 0.5:
        begin = rng.uniform(0, float(SECONDS) / 2)
        distractors = (Event(rng.choice(_DISTRACTORS), begin, begin + float(SECONDS) / 2),)
    return VideoPlan(
        index=index,
        seed=_SEEDS[subset],
        name=f"{subset}_{index}.mp4",
        subset=subset,
        width=_WIDTH,
        height=_HEIGHT,
        fps=count / SECONDS,
        frames=count,
        codec="",
        actions=actions,
        distractors=distractors,
        shots=(Shot(0.0, rng.choice(_SCENES)),),
    )
