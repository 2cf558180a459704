"""Shards of frames and flow of given pictures, as the video stage writes them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from actionspan.storage.writing import create_h5

Pictures = tuple[np.ndarray, np.ndarray]  # frames (T, h, w, 3) and flow (T, 2L, h, w) of a video


def smooth(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Pictures (…, h, w) of blocks of 16 pixels, which JPEG keeps to a few levels."""
    *more, height, width = shape
    coarse = rng.integers(60, 200, (*more, height // 16, width // 16))
    return coarse.repeat(16, axis=-2).repeat(16, axis=-1).astype(np.uint8)


def write_shard(
    folder: Path,
    name: str,
    videos: Mapping[str, Pictures],
    *,
    step: float = 0.4,
    bound: float = 20.0,
    snippet_frames: int = 8,
) -> tuple[Path, Path]:
    """Write the frames and the flow of videos whose snippets are `step` seconds apart."""
    frames, flow = folder / f"frames_{name}.h5", folder / f"flow_{name}.h5"
    with create_h5(frames, "frames") as frame_file, create_h5(flow, "flow") as flow_file:
        flow_file.attrs["settings"] = '{"frames": {"snippet_frames": 8}}'
        for video, (rgb, planes) in videos.items():
            count = len(rgb)
            frame_file.create_group(video)["rgb"] = rgb
            group = flow_file.create_group(video)
            group["flow"] = planes
            group["flow"].attrs["bound"] = bound
            group["time"] = step * (0.5 + np.arange(count))
            group["frame_difference"] = np.linspace(0, 1, count, dtype=np.float32)
            group["flow_magnitude"] = np.linspace(2, 3, count, dtype=np.float32)
            group.attrs.update(fps=8 / step, frame_count=8 * count, duration_seconds=step * count)
            group.attrs.update(snippet_frames=snippet_frames, sha256=f"bytes of {video}")
    return frames, flow
