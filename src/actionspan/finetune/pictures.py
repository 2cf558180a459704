"""The pictures of a video as an encoder is given them: read ahead, or when they are asked for."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from actionspan.finetune.augmentation import NONE, draw
from actionspan.finetune.settings import FinetuneSettings
from actionspan.finetune.snippets import SnippetFrames, SnippetStore
from actionspan.finetune.videos import TunedVideo

_VIDEOS_HELD = 2  # the one that is learned from, and the next


class HeldFrames(NamedTuple):
    """Pictures in memory: a uint8 (T, size, size, C) tensor for each stream."""

    parts: tuple[Tensor, ...]

    def __len__(self) -> int:
        """Return T."""
        return len(self.parts[0])

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        """Return rows (n,) of each stream."""
        return tuple(part[rows] for part in self.parts)


class BlankFrames:
    """Pictures without content, for plans of memory: those of `count` snippets.

    `nbytes` are those held in memory: of two videos, or none where pictures are decoded again for
    each piece.
    """

    def __init__(self, count: int, settings: FinetuneSettings, planes: int, held: bool) -> None:
        size = settings.input_size
        self.count = count
        self.shapes = [(size, size, 3 if each == "rgb" else planes) for each in settings.streams]
        every = count * sum(math.prod(shape) for shape in self.shapes)
        self.nbytes = _VIDEOS_HELD * every if held else 0

    def __len__(self) -> int:
        """Return T."""
        return self.count

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return rows (n,) of each stream, on `meta`."""
        return tuple(
            torch.empty(len(rows), *shape, dtype=torch.uint8, device="meta")
            for shape in self.shapes
        )


def frames_of(
    store: SnippetStore,
    video: TunedVideo,
    settings: FinetuneSettings,
    place: tuple[int, int] | None = None,
) -> SnippetFrames:
    """Return a video's pictures, read when they are asked for.

    `place` is (epoch, place in the epoch) where pictures are cropped and flipped; None: as they
    are.
    """
    changed = NONE
    if place is not None and settings.augment:
        changed = draw(settings.seed, *place)
    return SnippetFrames(store, video.name, settings.streams, settings.input_size, changed)


def held(frames: SnippetFrames) -> HeldFrames:
    """Read all pictures of a video into memory."""
    return HeldFrames(frames[torch.arange(len(frames))])


def in_turn(
    store: SnippetStore,
    videos: Sequence[tuple[TunedVideo, tuple[int, int]]],
    settings: FinetuneSettings,
    hold: bool,
) -> Iterator[HeldFrames | SnippetFrames]:
    """Yield the pictures of videos, each with its place: in memory with `hold`."""
    for video, place in videos:
        frames = frames_of(store, video, settings, place)
        yield held(frames) if hold else frames
