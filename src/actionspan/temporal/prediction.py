"""The probabilities that a temporal network gives the steps of a video."""

from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float32, Int64
from actionspan.errors import InputError
from actionspan.features.steps import cut_windows, merge_windows
from actionspan.features.store import open_features, read_transform
from actionspan.features.transform import Transform
from actionspan.jobs.determinism import deterministic
from actionspan.jobs.progress import progress
from actionspan.storage.model_files import read_model
from actionspan.storage.writing import digest
from actionspan.temporal.labels import KINDS
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.networks import load_model, model_digest
from actionspan.temporal.probabilities import Prediction, write_probabilities


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
        batch = _one(features)
        both = model(batch) if part is None else model.without(batch, part)
        probabilities: Float32 = both[0].contiguous().numpy()  # (T, 3)
    return probabilities


def _one(features: Float32) -> Tensor:
    return torch.from_numpy(np.array(features, dtype=np.float32))[None]  # (1, T, C)


def predict_windows(
    model: TemporalNetwork, windows: Float32, starts: Int64, length: int, part: int | None = None
) -> Prediction:
    """Return the probabilities (length, 3) of a video, the mean of its windows' where they overlap.

    `windows` are (N, T, C), the first step of each in `starts` (N,); a single window may be the
    full video. See `predict_probabilities`.
    """
    each = np.stack([predict_probabilities(model, window, part) for window in windows])
    return Prediction(merge_windows(each, starts, length))


def _needs_no_windows(model: TemporalNetwork) -> bool:
    """Return whether a network sees whole videos: a stream's would miss something at their ends."""
    return model.cross_fitted and model.look_ahead is not None


def predict_sequence(
    model: TemporalNetwork, sequence: Float32, transform: Transform | None = None
) -> Prediction:
    """Return the probabilities of a whole video (T, C); without a transform, in one window."""
    if transform is None or _needs_no_windows(model):
        return Prediction(predict_probabilities(model, sequence))
    starts = transform.starts(len(sequence))
    windows = cut_windows(sequence, starts, transform.steps)
    return predict_windows(model, windows, starts, len(sequence))


def predict_parts(
    model: TemporalNetwork, sequence: Float32, parts: Int64, transform: Transform
) -> Prediction:
    """Return the probabilities (T, 3) of a training video (T, C) by members that did not learn it.

    The steps of each of the `parts` (T,) are joined and seen, without the others, by the member
    that left them out of its loss. Their cues of change are still the full video's.

    Raises:
        ValueError: The model learned the video with another number of steps; or see
            `predict_probabilities`.
    """
    if len(sequence) != len(parts):
        learned = f"the model learned {len(parts)}; train it again"
        raise ValueError(f"{len(sequence)} steps, but {learned}")
    probabilities = np.zeros((len(sequence), KINDS), np.float32)
    for part in np.unique(parts).tolist():
        rest = sequence[parts == part]
        starts = transform.starts(len(rest))
        windows = cut_windows(rest, starts, transform.steps)
        prediction = predict_windows(model, windows, starts, len(rest), part)
        probabilities[parts == part] = prediction.probabilities
    return Prediction(probabilities, parts=parts)


def predict(model_path: Path, features_path: Path, out: Path) -> None:
    """Write probabilities.h5: the probabilities of every video of features.h5.

    Raises:
        InputError: A file is missing, or the model was trained on different features.
    """
    stored = read_model(model_path)
    model, (made_by, learned) = load_model(stored), model_digest(stored)
    transform = read_transform(features_path) if learned else None
    features = open_features(features_path)
    if (channels := features.array.shape[2]) != model.channels:
        learned_on = f"{model_path} was trained on {model.channels}; train it on these features"
        raise InputError(f"{features_path}: {channels} channels, but {learned_on}")
    videos = features.videos()
    first = [video.start for video in videos]

    def predicted(video: slice, name: str) -> Prediction:
        if transform is not None and name in learned:
            return predict_parts(model, features.sequence(video), learned[name], transform)
        if _needs_no_windows(model):
            return predict_sequence(model, features.sequence(video))
        starts, length = features.first_step[video], int(features.length[video.start])
        return predict_windows(model, features.array[video], starts, length)

    def values() -> Iterator[Prediction]:
        for video in progress(videos, "predicting probabilities", len(videos)):
            name = features.video_id[video.start]
            try:
                made = predicted(video, name)
            except ValueError as error:
                raise InputError(f"{features_path}: video {name}: {error}") from None
            yield made._replace(marks=features.marks(video))

    write_probabilities(
        out,
        digest(made_by),
        [features.video_id[row] for row in first],
        features.duration_seconds[first].tolist(),
        [features.subset[row] for row in first],
        features.length[first].tolist(),
        values(),
    )


class Resumable:
    """An object with a state, its attributes `changing`, from which another can resume."""

    changing: tuple[str, ...]

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the changing attributes, by their names without underscore."""
        return {name.lstrip("_"): copy(getattr(self, name)) for name in self.changing}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        for name in self.changing:
            setattr(self, name, copy(state[name.lstrip("_")]))


class NetworkStream(Resumable):
    """The probabilities of a network for each row, `look_ahead` rows later.

    It sees the last rows that a probability depends on, and no more: equal to the network on all
    rows together, up to rounding.

    Raises:
        ValueError: The network may look at all of a video.
    """

    changing = ("_rows", "_waiting")

    def __init__(self, network: TemporalNetwork) -> None:
        if network.look_ahead is None or network.look_back is None:
            raise ValueError("a network that looks at the whole video")
        self.network = network
        self._back, self._ahead = network.look_back, network.look_ahead
        self._rows = np.zeros((0, network.channels), np.float32)
        self._waiting = 0  # rows at the end that have no probabilities yet

    def add(self, row: Float32) -> Float32:
        """Return the probabilities (N, 3) that a row (C,) completes, none or one."""
        kept = self._back + 1 + self._ahead
        self._rows = np.concatenate([self._rows, row[None]])[-kept:]
        self._waiting += 1
        return self._complete(self._waiting - self._ahead)

    def finish(self) -> Float32:
        """Return the probabilities (N, 3) of the remaining rows at the end of the stream."""
        return self._complete(self._waiting)

    def _complete(self, count: int) -> Float32:
        """Return the probabilities of the first `count` waiting rows."""
        if count <= 0:
            return np.zeros((0, KINDS), np.float32)
        probabilities = predict_probabilities(self.network, self._rows)
        first = len(probabilities) - self._waiting
        self._waiting -= count
        return probabilities[first : first + count]
