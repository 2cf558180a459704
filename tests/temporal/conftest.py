"""A toy data set in which the features tell where the actions are."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import write_annotations
from actionspan.features.steps import cut_windows, window_starts
from actionspan.features.transform import StreamTransform, Transform
from worlds.features import write_features
from worlds.scored import annotated

STEPS = 100


@dataclass(frozen=True)
class Toy:
    """The files of a toy data set, and what is in them."""

    features: Path
    annotations: Path
    array: np.ndarray
    video_id: list[str]


def still(array: np.ndarray) -> dict[str, np.ndarray]:
    """Return the motion of videos in which nothing moves."""
    return dict.fromkeys(("frame_difference", "flow_magnitude"), np.zeros(array.shape[:2], "f"))


def write_toy(folder: Path, training=8, validation=4, channels=6, seed=0) -> Toy:
    """Write features.h5 and annotations.json: channel 0 is the action, the rest is noise."""
    random, count = np.random.default_rng(seed), training + validation
    array = random.normal(size=(count, STEPS, channels)).astype(np.float32)
    duration = random.uniform(20, 60, size=count)
    subset = ["training"] * training + ["validation"] * validation
    video_id = [f"video_{row:03d}" for row in range(count)]
    annotations = []
    for row, name in enumerate(video_id):
        first, last = np.sort(random.choice(np.arange(5, 95), size=2, replace=False)).tolist()
        array[row, first:last, 0] += 4
        seconds = float(duration[row])
        segment = (first * seconds / STEPS, last * seconds / STEPS)
        annotations.append(annotated(name, segment, subset=subset[row], duration=seconds))
    folder.mkdir(parents=True, exist_ok=True)
    write_features(folder / "features.h5", array, video_id, duration, subset, **still(array))
    write_annotations(folder / "annotations.json", annotations)
    return Toy(folder / "features.h5", folder / "annotations.json", array, video_id)


def write_toy_sequences(
    folder: Path, training=8, validation=3, channels=6, seed=0, window=24, longest=24
) -> Toy:
    """Write sequences.h5, named features.h5, and annotations.json of videos of 12 steps and more.

    Column 0 says what is inside, 1 is the action, the rest is noise; a step has half a second.
    """
    random = np.random.default_rng(seed)
    video_id = [f"video_{row:03d}" for row in range(training + validation)]
    lengths = random.integers(12, longest + 1, size=len(video_id))
    rows, names, firsts, annotations = [], [], [], []
    for place, (name, length) in enumerate(zip(video_id, lengths.tolist(), strict=True)):
        sequence = random.normal(size=(length, channels)).astype(np.float32)
        first, last = np.sort(random.choice(np.arange(2, length - 1), 2, replace=False)).tolist()
        sequence[:, 0] = 1
        sequence[first:last, 1] += 4
        starts = window_starts(length, window, window // 2, rest=0)
        rows += list(cut_windows(sequence, starts, window))
        names += [name] * len(starts)
        firsts += starts.tolist()
        subset = "training" if place < training else "validation"
        segment = (first / 2, last / 2)
        annotations.append(annotated(name, segment, subset=subset, duration=length / 2))
    known = {one.video_id: one for one in annotations}
    duration = np.array([known[name].duration_seconds for name in names])
    folder.mkdir(parents=True, exist_ok=True)
    path, array = folder / "features.h5", np.stack(rows)
    windows = {"first_step": firsts, "length": (2 * duration).astype(int), **still(array)}
    write_features(path, array, names, duration, [known[name].subset for name in names], **windows)
    width = channels - 1
    mean, components, scale = (f(width).astype(np.float32) for f in (np.zeros, np.eye, np.ones))
    stream = StreamTransform(mean=mean, components=components, scale=scale)
    grid = {"steps": window, "method": "nearest", "grid": "windows", "stride": window // 2}
    transform = Transform(streams={"external": stream}, cues=True, **grid)
    with h5py.File(path, "r+") as file:
        for key, values in transform.to_arrays().items():
            file[f"transform/{key}"] = values
    write_annotations(folder / "annotations.json", annotations)
    return Toy(path, folder / "annotations.json", array, video_id)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return write_toy(tmp_path)


@pytest.fixture
def make_toy(tmp_path: Path) -> Callable[..., Toy]:
    """`write_toy` into a folder of the test, by name."""
    return lambda name, **options: write_toy(tmp_path / name, **options)
