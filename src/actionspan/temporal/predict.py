"""Probabilities of start, action and end, one video at a time."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import torch

from actionspan.errors import InputError
from actionspan.features.store import open_features
from actionspan.progress import progress
from actionspan.storage import create_h5
from actionspan.temporal.deterministic import deterministic
from actionspan.temporal.model_file import load_model, read_torch
from actionspan.temporal.mtn import MTN, BaseTEM

Array = npt.NDArray[Any]


def predict_probabilities(model: BaseTEM | MTN, features: Array) -> Array:
    """Return the probabilities of one video.

    One forward over one video on one thread: the bits depend on nothing but the model and the
    video, so `propose` on a file and the workflow over a million give the same.

    Args:
        model: From `load_model`.
        features: (T, C) float32.

    Returns:
        (T, 3) float32: start, action, end.

    Raises:
        ValueError: The features are not (T, C) of the model's C, or not finite.
    """
    if features.ndim != 2 or features.shape[1] != model.channels:
        raise ValueError(f"features of shape {features.shape}: (T, {model.channels})")
    if not np.isfinite(features).all():
        raise ValueError("features hold NaN or infinity")
    with deterministic(threads=1), torch.inference_mode():
        batch = torch.from_numpy(np.array(features, dtype=np.float32))[None]  # (1, T, C)
        probabilities: Array = model(batch)[0].contiguous().numpy()  # (T, 3)
    return probabilities


def predict(model_path: Path, features_path: Path, out: Path) -> None:
    """Write probabilities.h5: the probabilities of every video of features.h5.

    Raises:
        InputError: A file is missing, or the model was trained on other features.
    """
    content = read_torch(model_path)
    model = load_model(model_path)
    features = open_features(features_path)
    videos, steps, channels = features.array.shape
    if channels != model.channels:
        raise InputError(
            f"{features_path}: {channels} channels, but {model_path} was trained on "
            f"{model.channels}; train it on these features"
        )
    with create_h5(out, content["digest"]) as file:
        rows = file.create_dataset("probabilities", (videos, steps, 3), dtype="float32")
        for row in progress(range(videos), "predicting probabilities", videos):
            try:
                rows[row] = predict_probabilities(model, features.array[row])
            except ValueError as error:
                name = features.video_id[row]
                raise InputError(f"{features_path}: video {name}: {error}") from None
        text = h5py.string_dtype("utf-8")
        file.create_dataset("video_id", data=list(features.video_id), dtype=text)
        file.create_dataset("duration_seconds", data=np.asarray(features.duration_seconds, float))
        file.create_dataset("subset", data=list(features.subset), dtype=text)
