"""The signals that baselines group: one value for each of the equal parts of a video."""

import sys
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from actionspan.dataset.tables import Annotation
from actionspan.errors import InputError
from actionspan.evaluation.rows import Floats
from actionspan.storage import open_h5


def frame_differences(path: Path, videos: Sequence[Annotation]) -> list[Floats]:
    """Return the (T,) frame differences of each video, from features.h5.

    Raises:
        InputError: The file has none, as that of external features.
    """
    with open_h5(path) as file:
        if "frame_difference" not in file:
            raise InputError(
                f"{path}: no 'frame_difference' (external features have none); "
                "leave out the baseline 'difference'"
            )
        return _of_videos(path, file, np.asarray(file["frame_difference"][:], np.float64), videos)


def actionness(path: Path, videos: Sequence[Annotation]) -> list[Floats]:
    """Return the (T,) probabilities of action of each video, from probabilities.h5.

    Raises:
        InputError: The file has none, or a value is not in 0…1.
    """
    with open_h5(path) as file:
        if "probabilities" not in file or "video_id" not in file:
            raise InputError(f"{path}: no probabilities; `temporal predict` writes it")
        values = np.asarray(file["probabilities"][:, :, 1], np.float64)
        signals = _of_videos(path, file, values, videos)
    for video, signal in zip(videos, signals, strict=True):
        if not ((signal >= 0) & (signal <= 1)).all():  # NaN compares false
            raise InputError(
                f"{path}: {video.video_id}: probabilities are not all in 0…1; make the file again"
            )
    return signals


def _of_videos(
    path: Path, file: h5py.File, values: Floats, videos: Sequence[Annotation]
) -> list[Floats]:
    """Return the row of each video; zeros for one that is not in the file.

    Such a video's decoding broke off: it gets no proposals and counts as a miss.
    """
    rows = {name: row for row, name in enumerate(file["video_id"].asstr()[:])}
    missing = [video.video_id for video in videos if video.video_id not in rows]
    if missing:
        print(f"{path}: without features: {', '.join(missing)}", file=sys.stderr)
    nothing = np.zeros(values.shape[1])
    return [values[rows[video.video_id]] if video.video_id in rows else nothing for video in videos]
