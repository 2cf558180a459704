"""Small stores of clips whose pictures show what they are."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from actionspan.recognition.clip_lists import ClipSettings
from actionspan.recognition.clip_store import ClipStore, write_clip
from actionspan.storage.writing import create_h5
from actionspan.video.jpegs import Position
from worlds.shards import Pictures, smooth, write_shard

HEIGHT, WIDTH, STACK = 32, 48, 2


@pytest.fixture
def make_positions() -> Callable[..., list[Position]]:
    def make(count: int, seed: int = 0, stack: int = STACK) -> list[Position]:
        rng = np.random.default_rng(seed)
        return [
            Position(
                np.moveaxis(smooth(rng, 3, HEIGHT, WIDTH), 0, -1),
                smooth(rng, 2 * stack, HEIGHT, WIDTH),
                0.5 + number,
            )
            for number in range(count)
        ]

    return make


@pytest.fixture
def write_store(tmp_path: Path, make_positions: Callable[..., list[Position]]) -> Callable:
    """Write a shard of clips given as (id, label, subset, positions)."""

    def write(
        clips: list[tuple[str, str, str, int]],
        name: str = "0000",
        stack: int = STACK,
        bound: float = 20.0,
        **settings: int,
    ) -> Path:
        chosen = ClipSettings(**{"height": HEIGHT, "width": WIDTH, "jpeg_quality": 95, **settings})
        path = tmp_path / f"{name}.h5"
        with create_h5(path, "test") as file:
            for clip_id, label, subset, positions in clips:
                write_clip(
                    file.create_group(clip_id),
                    make_positions(positions, len(clip_id) + ord(clip_id[-1]), stack),
                    chosen,
                    label=label,
                    subset=subset,
                    bound=bound,
                )
        return path

    return write


@pytest.fixture
def write_videos(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Write frames and flow of videos given with their snippets, 1 s apart.

    Every pixel of snippet k is 10 k + 20 in RGB; its x flow has code 128 + k and its y flow 128.
    """

    def write(lengths: dict[str, int], name: str = "s") -> tuple[Path, Path]:
        videos: dict[str, Pictures] = {}
        for video, count in lengths.items():
            numbers = np.arange(count, dtype=np.uint8)[:, None, None, None]
            planes = np.full((count, 2 * STACK, 48, 60), 128, np.uint8)
            planes[:, ::2] += numbers
            videos[video] = np.full((count, 48, 60, 3), 20, np.uint8) + 10 * numbers, planes
        return write_shard(tmp_path, name, videos, step=1.0)

    return write


@pytest.fixture
def store(write_store: Callable) -> ClipStore:
    clips = [("a", "run", "training", 3), ("b", "jump", "validation", 1)]
    clips += [("c", "background", "training", 7), ("d", "run", "validation", 5)]
    return ClipStore([write_store(clips)])
