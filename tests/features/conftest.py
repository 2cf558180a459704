"""Small shards and tables of the features stage."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from actionspan.dataset.tables import (
    VIDEO_COLUMNS,
    Annotation,
    Video,
    write_annotations,
    write_videos,
)
from actionspan.files.storage import create_h5

SEED = 7


def _make_video(video_id: str, duration: float = 10.0, fps: float = 25.0) -> Video:
    return Video(
        video_id=video_id,
        path=Path(f"{video_id}.mp4"),
        fps=fps,
        frames=round(duration * fps),
        duration_seconds=duration,
        width=64,
        height=48,
        sha256=video_id * 4,
    )


@pytest.fixture
def make_video() -> Callable[..., Video]:
    return _make_video


@pytest.fixture
def write_tables(tmp_path: Path) -> Callable[[dict[str, str]], tuple[Path, Path]]:
    """Write videos.tsv and annotations.json for videos given with their subsets."""

    def write(subsets: dict[str, str], duration: float = 10.0) -> tuple[Path, Path]:
        videos, annotations = tmp_path / "videos.tsv", tmp_path / "annotations.json"
        write_videos(videos, [_make_video(name, duration) for name in subsets], VIDEO_COLUMNS)
        write_annotations(
            annotations,
            [
                Annotation(video_id=name, subset=subset, duration_seconds=duration)
                for name, subset in subsets.items()
            ],
        )
        return videos, annotations

    return write


@pytest.fixture
def write_shard(tmp_path: Path) -> Callable[..., Path]:
    """Write a feature shard of given streams a video, over 10 s, and cuts of some videos."""

    def write(
        name: str,
        videos: dict[str, dict[str, np.ndarray]],
        motion: bool = True,
        cuts: Mapping[str, np.ndarray] = {},
    ) -> Path:
        path = tmp_path / f"{name}.h5"
        with create_h5(path, "test") as file:
            for video_id, streams in videos.items():
                group = file.create_group(video_id)
                rows = len(next(iter(streams.values())))
                for stream, values in streams.items():
                    group[stream] = values.astype(np.float32)
                group["time"] = (np.arange(rows) + 0.5) * 10.0 / rows
                if motion:
                    group["frame_difference"] = np.linspace(0, 1, rows, dtype=np.float32)
                    group["flow_magnitude"] = np.linspace(2, 4, rows, dtype=np.float32)
                if video_id in cuts:
                    group["cuts"] = cuts[video_id]
        return path

    return write


@pytest.fixture
def write_images(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Write a frames and a flow shard of small random images."""

    def write(
        lengths: dict[str, int], name: str = "s", pairs: int = 2, seed: int = SEED
    ) -> tuple[Path, Path]:
        frames, flow = tmp_path / f"{name}_frames.h5", tmp_path / f"{name}_flow.h5"
        with create_h5(frames, "frames") as frame_file, create_h5(flow, "flow") as flow_file:
            for video_id, rows in lengths.items():
                random = np.random.default_rng([seed, *video_id.encode()])
                frame_group = frame_file.create_group(video_id)
                frame_group["rgb"] = random.integers(0, 256, (rows, 40, 56, 3), np.uint8)
                frame_group["mover"] = random.integers(0, 256, (rows, 32, 32, 3), np.uint8)
                group = flow_file.create_group(video_id)
                group["flow"] = random.integers(100, 156, (rows, 2 * pairs, 40, 56), np.uint8)
                group["flow"].attrs["bound"] = 20.0
                group["time"] = np.arange(rows) + 0.5
                group["frame_difference"] = random.random(rows, np.float32)
                group["flow_magnitude"] = random.random(rows, np.float32)
                for one in (frame_group, group):
                    one.attrs["sha256"] = video_id
                    one.attrs["fps"] = 25.0
                    one.attrs["duration_seconds"] = float(rows)
        return frames, flow

    return write
