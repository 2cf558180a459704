"""Simulated features.h5 with segments of real annotations, for tests of speed.

Durations, subsets and segments are those of real annotations; the features are random numbers. At
every step of an action, a start or an end, a direction in feature space is added, so that a network
has something to learn; what it learns says nothing about videos.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np

from actionspan.annotations.tables import Annotation, write_annotations
from actionspan.arrays import Float32
from actionspan.dataset.matching import IndexSettings, index_annotations, read_annotations
from actionspan.errors import InputError, counted
from actionspan.jobs.progress import progress
from actionspan.storage.writing import atomic_path, create_h5, digest, read_json, write_json

STEPS = 100
SIGNAL = 1.5  # length of a direction; the noise along it has a deviation of 1, whatever C
BOUNDARY = 0.05  # reach of a start or end to both sides, as part of its segment


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """How much is simulated."""

    videos: int = 20000  # if the annotations have fewer, some are repeated
    channels: int = 400
    seed: int = 1  # of the choice of videos and of their features


def simulate(
    annotations: Sequence[Path],
    video_info: Path | None,
    out_features: Path,
    out_annotations: Path,
    settings: Simulated,
) -> None:
    """Write features.h5, (N, 100, C) float32, and its annotations.json, marked as simulated.

    A single video is in memory at a time. The table `video_info` has what the annotations lack.

    Raises:
        InputError: The annotations hold no segment.
    """
    known = _read_known(annotations, video_info)
    drawn = draw(known, settings)
    with create_h5(out_features, digest(settings, drawn, "simulated features")) as file:
        _write_features(file, drawn, settings)
        with atomic_path(out_annotations) as partial:  # last, so that both files change together
            write_annotations(partial, drawn)
            write_json(partial, {"simulated": True} | read_json(partial))


def draw(known: Sequence[Annotation], settings: Simulated) -> list[Annotation]:
    """Choose videos at random, as few as possible twice, and name them simulated_00001, …."""
    random = np.random.default_rng(settings.seed)
    again = settings.videos > len(known)
    chosen = random.choice(len(known), size=settings.videos, replace=again)
    digits = max(5, len(str(settings.videos)))
    return [
        replace(known[row], video_id=f"simulated_{number:0{digits}d}")
        for number, row in enumerate(chosen.tolist(), start=1)
    ]


def simulate_features(
    annotation: Annotation, directions: Float32, random: np.random.Generator
) -> Float32:
    """Return the (100, C) features of a video: noise, and the direction of what happens.

    `directions` is (3, C), of start, action and end.
    """
    noise = random.standard_normal((STEPS, directions.shape[1]), dtype=np.float32)
    segments = np.array([(known.start, known.end) for known in annotation.instances]).reshape(-1, 2)
    starts, ends = segments.T[..., None] / annotation.duration_seconds  # (K, 1) each
    middles = (np.arange(STEPS) + 0.5) / STEPS  # (100,)
    reach = np.maximum(0.5 / STEPS, BOUNDARY * (ends - starts))
    happens = (  # (K, 100) each
        abs(middles - starts) <= reach,
        (middles >= starts) & (middles <= ends),
        abs(middles - ends) <= reach,
    )
    for steps, direction in zip(happens, directions, strict=True):
        noise[steps.any(axis=0)] += direction
    return noise


def _write_features(file: h5py.File, drawn: Sequence[Annotation], settings: Simulated) -> None:
    about = {"description": "simulated features", "data": "simulated videos"}
    file.attrs.update(simulated=True, **about, seed=settings.seed)
    text = h5py.string_dtype()
    file.create_dataset("video_id", data=[video.video_id for video in drawn], dtype=text)
    file.create_dataset("subset", data=[video.subset for video in drawn], dtype=text)
    file["duration_seconds"] = [video.duration_seconds for video in drawn]
    shape = (len(drawn), STEPS, settings.channels)
    features = file.create_dataset("features", shape, np.float32)  # contiguous
    directions = _generator(settings.seed, 0).standard_normal((3, settings.channels))
    directions *= SIGNAL / np.linalg.norm(directions, axis=1, keepdims=True)
    for row, annotation in enumerate(progress(drawn, "simulating", len(drawn))):
        random = _generator(settings.seed, row + 1)  # each video has a sequence of its own
        features[row] = simulate_features(annotation, directions.astype(np.float32), random)


def _generator(*numbers: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(numbers))


def _read_known(annotations: Sequence[Path], video_info: Path | None) -> list[Annotation]:
    """Read annotations of any format; report on standard error how many are not usable."""
    settings = IndexSettings()
    index = index_annotations(read_annotations(annotations, video_info, settings), settings)
    if index.rejections:
        first = f"entries of the annotations, the first: {index.rejections[0].line()}"
        print(f"left out: {len(index.rejections)} {first}", file=sys.stderr)
    if not any(video.instances for video in index.annotations):
        names, videos = ", ".join(map(str, annotations)), counted(len(index.annotations), "video")
        raise InputError(f"{names}: no segment in {videos} to draw from")
    return index.annotations
