"""A feature shard from files of features that people already have."""

from functools import partial
from pathlib import Path

import h5py
import numpy as np

from actionspan.arrays import Float64
from actionspan.dataset.tables import Video, read_videos
from actionspan.errors import InputError
from actionspan.features.feature_files import find_file, read_features
from actionspan.features.settings import ExternalSettings
from actionspan.files.storage import digest
from actionspan.running.apart import described
from actionspan.running.parts import map_videos
from actionspan.running.shards import ShardWork


def row_times(rows: int, video: Video, settings: ExternalSettings) -> Float64:
    """Return the centre of each row of a file in seconds.

    With a stride, row k is at frame offset + k · stride; without it, at the middle of the k-th of
    `rows` equal parts of the video.

    Raises:
        InputError: Rows are more than a stride beyond the end of the video, or a stride is given
            and the video's frame rate is not known.
    """
    if not settings.stride:
        return (np.arange(rows, dtype=np.float64) + 0.5) * (video.duration_seconds / rows)
    if video.fps <= 0:
        raise InputError(
            "stride is in frames, and the annotations give this video no frame rate; give "
            "dataset.video_info, or stride 0"
        )
    times = (settings.offset + settings.stride * np.arange(rows)) / video.fps
    if times[-1] > video.duration_seconds + settings.stride / video.fps:
        raise InputError(
            f"row {rows - 1} is at {times[-1]:.2f} s, the video ends at "
            f"{video.duration_seconds:.2f} s: stride or offset is wrong, or its unit is not frames"
        )
    return np.asarray(times)


def import_features(
    folder: Path,
    videos: Path,
    out: Path,
    settings: ExternalSettings,
    how: ShardWork | None = None,
) -> dict[str, str]:
    """Read the features of every video of videos.tsv into a shard.

    Videos whose file is missing, damaged, or of a different width than the first are rejected with
    a line each.

    Returns:
        The reasons of the rejected videos by video id.

    Raises:
        InputError: The folder is missing or no video has features.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    listed = read_videos(videos)
    width = _first_width(folder, listed, settings)

    names = [video.video_id for video in listed]
    both = digest(settings, str(folder), width)
    digests = [digest(both, video, _stamp(folder, video)) for video in listed]
    return map_videos(
        out,
        names,
        listed,
        digests,
        partial(_work, folder, width, settings),
        title="reading",
        how=how,
        settings_digest=both,
        attributes={"description": f"features from the folder {folder.resolve().name}"},
    )


def _work(
    folder: Path, width: int, settings: ExternalSettings, video: Video, group: h5py.Group
) -> None:
    path = find_file(folder, video.video_id)
    features = read_features(path, settings.layout)
    if features.shape[1] != width:
        raise InputError(
            f"{path}: {features.shape[1]} features a row, other files have {width}"
            + ("; is it the other --layout?" if features.shape[0] == width else "")
        )
    try:
        group["time"] = row_times(len(features), video, settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    group["external"] = features
    group.attrs.update(fps=video.fps, frame_count=video.frames, sha256=video.sha256)
    group.attrs["duration_seconds"] = video.duration_seconds


def _first_width(folder: Path, videos: list[Video], settings: ExternalSettings) -> int:
    """Return the width of the first file that can be read."""
    reason = ""
    for video in videos:
        try:
            return len(read_features(find_file(folder, video.video_id), settings.layout)[0])
        except Exception as error:  # whatever is wrong with it, another may do
            reason = reason or str(error) or described(error)
    raise InputError(f"{folder}: no video has features; the first: {reason or 'no video listed'}")


def _stamp(folder: Path, video: Video) -> str:
    """Return what changes when a video's file does."""
    try:
        facts = find_file(folder, video.video_id).stat()
    except (InputError, OSError) as error:
        return str(error)
    return f"{facts.st_size} {facts.st_mtime_ns}"
