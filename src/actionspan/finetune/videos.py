"""The videos that fine-tuning learns from, chooses by and is judged on, and their images."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from actionspan.annotations.tables import Instance, read_annotations
from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.finetune.settings import FinetuneSettings
from actionspan.finetune.snippets import NONE, SnippetFrames, SnippetStore, draw
from actionspan.storage.text import hash_of


@dataclass(frozen=True, kw_only=True, eq=False)
class TunedVideo:
    """A video: snippet centres (T,) and its duration in seconds, and its instances."""

    name: str
    times: Float64
    seconds: float
    instances: tuple[Instance, ...]

    @property
    def acts(self) -> bool:
        """Whether something happens in it, between its first and its last second."""
        return any(each.start < self.seconds and each.end > 0 for each in self.instances)

    @property
    def segments(self) -> Float64:
        """The (K, 2) starts and ends of its instances in seconds."""
        return np.array([(each.start, each.end) for each in self.instances]).reshape(-1, 2)


@dataclass(frozen=True, kw_only=True)
class VideoLists:
    """Videos by their use, each list sorted by id.

    `training` are learned from; `choosing` are training videos that are held out to choose the
    epoch; `validation` is that subset, which decides nothing.
    """

    training: list[TunedVideo]
    choosing: list[TunedVideo]
    validation: list[TunedVideo]
    labels: list[str]
    """The classes of the training videos, sorted."""

    @property
    def lists(self) -> tuple[list[TunedVideo], ...]:
        """The three lists."""
        return self.training, self.choosing, self.validation


def divide_videos(
    store: SnippetStore, annotations: Path, choosing_fraction: float = 0.0
) -> VideoLists:
    """Return the videos of a store by their use.

    Videos are held out by a hash of their ids. With a fraction above 0, at least one in which
    something happens is held out, if one is left to learn from. Training videos without snippets
    are named on standard error.

    Raises:
        InputError: The annotations cannot be read or lack a video, or nothing is left to learn
            from.
    """
    # 1. compare the store with the annotations
    annotated = {video.video_id: video for video in read_annotations(annotations)}
    stored = set(store.videos)
    if missing := sorted(stored - set(annotated)):
        raise InputError(
            f"{annotations}: video {missing[0]} has snippets but no entry in the annotations; add "
            "one, with an empty list if nothing happens in it"
        )
    training_ids = {name for name, each in annotated.items() if each.subset == "training"}
    if lost := sorted(training_ids - stored):
        some = ", ".join(lost[:3]) + (", …" if len(lost) > 3 else "")
        print(f"without snippets: {len(lost)} training videos: {some}", file=sys.stderr)
    # 2. divide the videos
    of_subset: dict[str, list[TunedVideo]] = {}
    for name, seconds in store.seconds.items():
        times, instances = store.times(name), annotated[name].instances
        video = TunedVideo(name=name, times=times, seconds=seconds, instances=instances)
        of_subset.setdefault(annotated[name].subset, []).append(video)
    training = of_subset.get("training", [])
    if not any(video.acts for video in training):
        raise InputError(
            f"{annotations}: no training video with snippets has an instance: there is nothing to "
            "learn from; annotate some, or give their subset as training"
        )
    held_out = _held_out(training, choosing_fraction)
    return VideoLists(
        training=[video for video in training if video.name not in held_out],
        choosing=[video for video in training if video.name in held_out],
        validation=of_subset.get("validation", []),
        labels=sorted({each.label for video in training for each in video.instances}),
    )


def _held_out(training: Sequence[TunedVideo], fraction: float) -> set[str]:
    """Return which training videos choose the epoch."""
    order = sorted(training, key=lambda video: hash_of(video.name))
    acting = [video for video in order if video.acts]
    if not fraction or len(acting) < 2:
        return set()
    first, last = acting[0], acting[-1]  # the one to choose by, and the one to learn from
    others = [video for video in order if video not in (first, last)]
    chosen = [first, *others][: max(1, round(fraction * len(order)))]
    return {video.name for video in chosen}


@dataclass(frozen=True)
class HeldFrames:
    """Images in memory: a uint8 (T, size, size, C) tensor for each stream."""

    parts: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return rows (n,) of each stream."""
        return tuple(part[rows] for part in self.parts)


class BlankFrames:
    """Images of `count` snippets without content, for plans of memory.

    `nbytes` are held in memory: two videos, or nothing where images are decoded again for each
    piece.
    """

    def __init__(self, count: int, settings: FinetuneSettings, planes: int, held: bool) -> None:
        size = settings.input_size
        self.count = count
        self.shapes = [(size, size, 3 if each == "rgb" else planes) for each in settings.streams]
        every = count * sum(math.prod(shape) for shape in self.shapes)
        self.nbytes = 2 * every if held else 0  # the one that is learned from, and the next

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return rows (n,) of each stream, on `meta`."""
        empty = partial(torch.empty, dtype=torch.uint8, device="meta")
        return tuple(empty(len(rows), *shape) for shape in self.shapes)


def frames_of(
    store: SnippetStore,
    video: TunedVideo,
    settings: FinetuneSettings,
    place: tuple[int, int] | None = None,
) -> SnippetFrames:
    """Return a video's images, read on demand.

    `place` is (epoch, place in the epoch) where they are cropped and flipped; None: as they are.
    """
    changed = draw(settings.seed, *place) if place is not None and settings.augment else NONE
    return SnippetFrames(store, video.name, settings.streams, settings.input_size, changed)


def held(frames: SnippetFrames) -> HeldFrames:
    """Read all images of a video into memory."""
    return HeldFrames(frames[torch.arange(len(frames))])
