"""Probabilities of start, action and end, one video at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from actionspan.arrays import Float32, Int64
from actionspan.errors import InputError
from actionspan.features.store import open_features
from actionspan.features.windows import merge_windows
from actionspan.files.storage import digest
from actionspan.files.torch_files import read_torch
from actionspan.running.determinism import deterministic
from actionspan.running.progress import progress
from actionspan.temporal.model_file import load_model
from actionspan.temporal.networks import TemporalNetwork
from actionspan.temporal.probabilities import write_probabilities


def predict_probabilities(
    model: TemporalNetwork, features: Float32, part: int | None = None
) -> Float32:
    """Return the probabilities (T, 3) of start, action and end of one video's features (T, C).

    One forward over one video on one thread: the bits depend on nothing but the model and the
    video, so `propose` on a file and the workflow over a million give the same. A video of a `part`
    of the training videos is seen by the member of a cross-fitted network that did not learn it.

    Raises:
        ValueError: The features are not (T, C) of the model's C, or not finite.
    """
    if features.ndim != 2 or features.shape[1] != model.channels:
        raise ValueError(f"features of shape {features.shape}: (T, {model.channels})")
    if not np.isfinite(features).all():
        raise ValueError("features hold NaN or infinity")
    with deterministic(threads=1), torch.inference_mode():
        batch = torch.from_numpy(np.array(features, dtype=np.float32))[None]  # (1, T, C)
        found = model(batch) if part is None else model.without(batch, part)
        probabilities: Float32 = found[0].contiguous().numpy()  # (T, 3)
    return probabilities


def predict_windows(
    model: TemporalNetwork,
    windows: Float32,
    starts: Int64,
    length: int,
    part: int | None = None,
) -> Float32:
    """Return the probabilities (length, 3) of a video, the mean of its windows' where they overlap.

    `windows` are (N, T, C), the first step of each in `starts` (N,); a single window may be the
    full video. See `predict_probabilities`.
    """
    found = np.stack([predict_probabilities(model, window, part) for window in windows])
    return merge_windows(found, starts, length)


def predict(model_path: Path, features_path: Path, out: Path) -> None:
    """Write probabilities.h5: the probabilities of every video of features.h5.

    Raises:
        InputError: A file is missing, or the model was trained on different features.
    """
    content = read_torch(model_path)
    model, made_by = load_model(model_path), content["digest"]
    learned = content.get("parts", {})
    features = open_features(features_path)
    if (channels := features.array.shape[2]) != model.channels:
        raise InputError(
            f"{features_path}: {channels} channels, but {model_path} was trained on "
            f"{model.channels}; train it on these features"
        )
    videos = features.videos()
    first = [video.start for video in videos]

    def values() -> Iterator[Float32]:
        for video in progress(videos, "predicting probabilities", len(videos)):
            starts, length = features.first_step[video], int(features.length[video.start])
            name = features.video_id[video.start]
            try:
                yield predict_windows(
                    model, features.array[video], starts, length, learned.get(name)
                )
            except ValueError as error:
                raise InputError(f"{features_path}: video {name}: {error}") from None

    write_probabilities(
        out,
        digest(made_by),
        [features.video_id[row] for row in first],
        features.duration_seconds[first].tolist(),
        [features.subset[row] for row in first],
        features.length[first].tolist(),
        values(),
    )
