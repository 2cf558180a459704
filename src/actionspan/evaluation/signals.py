"""The signals that baselines group: one value for each of the equal parts of a video."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from actionspan.arrays import Float64
from actionspan.dataset.tables import Annotation
from actionspan.errors import InputError
from actionspan.features.store import open_features
from actionspan.features.windows import merge_windows
from actionspan.files.storage import open_h5
from actionspan.temporal.probabilities import read_probabilities


def frame_differences(path: Path, videos: Sequence[Annotation]) -> list[Float64]:
    """Return the (T,) frame differences of each video, from features.h5.

    Raises:
        InputError: The file has none, as with external features.
    """
    features = open_features(path)
    if features.frame_difference is None:
        raise InputError(
            f"{path}: no 'frame_difference' (external features have none); "
            "leave out the baseline 'difference'"
        )
    values = features.frame_difference[:].astype(np.float64)
    signals = {
        features.video_id[rows.start]: merge_windows(
            values[rows], features.first_step[rows], int(features.length[rows.start])
        )
        for rows in features.videos()
    }
    return _chosen(path, signals, videos)


def actionness(path: Path, videos: Sequence[Annotation]) -> list[Float64]:
    """Return the (T,) probabilities of action of each video, from probabilities.h5.

    Raises:
        InputError: The file has none, or a value is not in 0…1.
    """
    with open_h5(path) as file:
        probabilities = read_probabilities(file, path)
        signals = {
            name: values[:, 1].astype(np.float64)
            for name, values in zip(probabilities.video_id, probabilities, strict=True)
        }
    chosen = _chosen(path, signals, videos)
    for video, signal in zip(videos, chosen, strict=True):
        if not ((signal >= 0) & (signal <= 1)).all():  # NaN compares false
            raise InputError(
                f"{path}: {video.video_id}: probabilities are not all in 0…1; make the file again"
            )
    return chosen


def _chosen(
    path: Path, signals: Mapping[str, Float64], videos: Sequence[Annotation]
) -> list[Float64]:
    """Return the signal of each video, a zero where it is not in the file.

    The decoding of such a video broke off: it gets no proposals and counts as a miss.
    """
    missing = [video.video_id for video in videos if video.video_id not in signals]
    if missing:
        print(f"{path}: without features: {', '.join(missing)}", file=sys.stderr)
    return [signals.get(video.video_id, np.zeros(1)) for video in videos]
