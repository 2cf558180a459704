"""Small shards of frames and flow whose pictures show which snippet they are."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from actionspan.finetune.settings import StoreSettings
from actionspan.finetune.storing import store_snippets
from actionspan.storage.writing import create_h5

HEIGHT, WIDTH, STACK = 48, 64, 2
SETTINGS = StoreSettings(height=HEIGHT, width=WIDTH, jpeg_quality=95)


def smooth(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Pictures of blocks of 16 pixels, which JPEG keeps to a few levels: (…, HEIGHT, WIDTH)."""
    coarse = rng.integers(60, 200, (*shape, HEIGHT // 16, WIDTH // 16))
    return coarse.repeat(16, axis=-2).repeat(16, axis=-1).astype(np.uint8)


def pictures_of(video: str, count: int, stack: int = STACK) -> tuple[np.ndarray, np.ndarray]:
    """The frames (T, H, W, 3) and flow (T, 2L, H, W) that `write_videos` writes."""
    rng = np.random.default_rng([*video.encode()])
    return np.moveaxis(smooth(rng, count, 3), 1, -1), smooth(rng, count, 2 * stack)


@pytest.fixture
def write_videos(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Write the frames and the flow of videos given with their snippets, 0.4 s apart."""

    def write(
        lengths: dict[str, int],
        name: str = "0000",
        bound: float = 20.0,
        stack: int = STACK,
        snippet_frames: int = 8,
    ) -> tuple[Path, Path]:
        frames, flow = tmp_path / f"frames_{name}.h5", tmp_path / f"flow_{name}.h5"
        with create_h5(frames, "frames") as frame_file, create_h5(flow, "flow") as flow_file:
            flow_file.attrs["settings"] = '{"frames": {"snippet_frames": 8}}'
            for video, count in lengths.items():
                rgb, planes = pictures_of(video, count, stack)
                frame_file.create_group(video)["rgb"] = rgb
                group = flow_file.create_group(video)
                group["flow"] = planes
                group["flow"].attrs["bound"] = bound
                group["time"] = 0.2 + 0.4 * np.arange(count)
                group["frame_difference"] = np.linspace(0, 1, count, dtype=np.float32)
                group["flow_magnitude"] = np.linspace(2, 3, count, dtype=np.float32)
                group.attrs.update(fps=20.0, frame_count=8 * count, duration_seconds=0.4 * count)
                group.attrs.update(snippet_frames=snippet_frames, sha256=f"bytes of {video}")
        return frames, flow

    return write


@pytest.fixture
def write_store(tmp_path: Path, write_videos: Callable) -> Callable[..., Path]:
    """Write the store of a shard of videos."""

    def write(
        lengths: dict[str, int],
        name: str = "0000",
        settings: StoreSettings = SETTINGS,
        **options: float,
    ) -> Path:
        out = tmp_path / "snippets" / f"{name}.h5"
        assert store_snippets(*write_videos(lengths, name, **options), out, settings) == {}
        return out

    return write


def near(made: np.ndarray, wanted: np.ndarray, axes: Sequence[int] = (1, 2)) -> None:
    """Compare pictures away from the edges of their blocks, where JPEG alters more."""
    for axis in axes:
        inner = np.flatnonzero(abs(np.arange(made.shape[axis]) % 16 - 7.5) < 5)
        made, wanted = made.take(inner, axis), wanted.take(inner, axis)
    np.testing.assert_allclose(made.astype(int), wanted.astype(int), atol=5)
