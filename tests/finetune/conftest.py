"""Small shards of frames and flow whose pictures show which snippet they are."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actionspan.finetune.settings import StoreSettings
from actionspan.finetune.store import store_snippets
from features.conftest import work_here
from worlds.shards import smooth, write_shard

HEIGHT, WIDTH, STACK = 48, 64, 2
SETTINGS = StoreSettings(height=HEIGHT, width=WIDTH, jpeg_quality=95)


def pictures_of(video: str, count: int, stack: int = STACK) -> tuple[np.ndarray, np.ndarray]:
    """The frames (T, H, W, 3) and flow (T, 2L, H, W) that `write_videos` writes."""
    rng = np.random.default_rng([*video.encode()])
    frames = smooth(rng, count, 3, HEIGHT, WIDTH)
    return np.moveaxis(frames, 1, -1), smooth(rng, count, 2 * stack, HEIGHT, WIDTH)


def write_videos_in(
    folder: Path, lengths: dict[str, int], name: str = "0000", stack: int = STACK, **how: Any
) -> tuple[Path, Path]:
    videos = {video: pictures_of(video, count, stack) for video, count in lengths.items()}
    return write_shard(folder, name, videos, **how)


def write_store_in(
    folder: Path,
    lengths: dict[str, int],
    name: str = "0000",
    settings: StoreSettings = SETTINGS,
    **options: float,
) -> Path:
    out = folder / "snippets" / f"{name}.h5"
    shard = write_videos_in(folder, lengths, name, **options)
    with work_here():
        assert store_snippets(*shard, out, settings) == {}
    return out


@pytest.fixture
def write_videos(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    return partial(write_videos_in, tmp_path)


@pytest.fixture
def write_store(tmp_path: Path) -> Callable[..., Path]:
    return partial(write_store_in, tmp_path)


def near(made: np.ndarray, wanted: np.ndarray, axes: Sequence[int] = (1, 2)) -> None:
    """Compare pictures away from the edges of their blocks, where JPEG alters more."""
    for axis in axes:
        inner = np.flatnonzero(abs(np.arange(made.shape[axis]) % 16 - 7.5) < 5)
        made, wanted = made.take(inner, axis), wanted.take(inner, axis)
    np.testing.assert_allclose(made.astype(int), wanted.astype(int), atol=5)
