"""One video's frames and optical flow, in a file that is deleted after use."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.files.hdf5 import new_h5
from actionspan.video.optical_flow import write_flow
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import write_frames


@contextmanager
def video_snippets(
    path: Path, frames: FrameSettings, flow: FlowSettings
) -> Iterator[tuple[h5py.Group, h5py.Group, float]]:
    """Yield a video's HDF5 groups of frames and of flow, and its duration in seconds.

    Raises:
        InputError: The file is missing or cannot be decoded.
    """
    video = probe_video(path)
    if video.error:
        raise InputError(f"{path}: {video.error}")
    with (
        tempfile.TemporaryDirectory(prefix="actionspan-") as folder,
        new_h5(Path(folder) / "snippets.h5") as file,
    ):
        write_frames(video, file.create_group("frames"), frames)
        write_flow(file["frames"], file.create_group("flow"), flow)
        yield file["frames"], file["flow"], video.duration_seconds
