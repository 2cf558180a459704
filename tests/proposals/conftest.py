"""A toy run: probabilities of training and validation videos with known actions."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import write_annotations
from actionspan.cli import main
from actionspan.storage.writing import create_h5
from worlds.scored import annotated

BINS = 100


def toy_video(rng, noise=0.03):
    """Return (T, 3) probabilities of one video and its instances as (start, end) bins.

    Each true boundary is a clear peak, false ones are lower and have no actionness between.
    """
    edges = np.sort(rng.choice(np.arange(5, 95, 6), 2 * rng.integers(1, 4), replace=False))
    truth = edges.reshape(-1, 2)
    probabilities = rng.uniform(0, noise, (BINS, 3))
    for start, end in truth:
        probabilities[start, 0] = rng.uniform(0.6, 0.9)
        probabilities[end, 2] = rng.uniform(0.6, 0.9)
        probabilities[start : end + 1, 1] += 0.9
    for column in (0, 2):
        false = rng.choice(BINS, 3, replace=False)
        probabilities[false, column] = np.maximum(probabilities[false, column], 0.6)
    return probabilities.clip(0, 1).astype(np.float32), truth


def write_probabilities(path: Path, probabilities, video_id, duration_seconds, subset):
    """Write probabilities.h5 as `temporal predict` does."""
    with create_h5(path, "probabilities") as file:
        file["probabilities"] = np.asarray(probabilities, np.float32)
        file["duration_seconds"] = np.asarray(duration_seconds, np.float64)
        for name, values in (("video_id", video_id), ("subset", subset)):
            file.create_dataset(name, data=list(values), dtype=h5py.string_dtype())


def run(folder, step, *words, **files):
    """Run `actionspan proposals …`; `files` are flags that name files of the folder."""
    for flag, name in files.items():
        words = (f"--{flag.replace('_', '-')}", str(folder / name), *words)
    return main(["proposals", step, *words])


@pytest.fixture
def toy(tmp_path):
    return write_toy(tmp_path)


def write_toy(folder):
    """Write probabilities.h5 and annotations.json of 30 + 10 videos; return the truth by id."""
    rng = np.random.default_rng(0)
    names = [f"video {index:02}" for index in range(40)]
    subsets = ["training"] * 30 + ["validation"] * 10
    durations = rng.uniform(5, 300, 40)
    made = [toy_video(rng) for _ in names]
    probabilities = [video for video, _ in made]
    write_probabilities(folder / "probabilities.h5", probabilities, names, durations, subsets)
    seconds = [
        (truth + 0.5) / BINS * duration
        for (_, truth), duration in zip(made, durations, strict=True)
    ]
    rows = zip(names, subsets, durations.tolist(), seconds, strict=True)
    known = [
        annotated(name, *truth.tolist(), subset=subset, duration=duration)
        for name, subset, duration, truth in rows
    ]
    write_annotations(folder / "annotations.json", known)
    return dict(zip(names, seconds, strict=True))
