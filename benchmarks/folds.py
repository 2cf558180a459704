"""Folds over the training videos of finished runs, for `recipes.py`.

A fold is a small data set of its own: a part of the training videos is held out, the others stay
training, and the run's own validation videos are in neither.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actionspan.annotations.tables import (
    VIDEO_COLUMNS,
    Annotation,
    Instance,
    Video,
    read_annotations,
    read_videos,
    write_annotations,
    write_videos,
)
from actionspan.arrays import Int64
from actionspan.dataset.folds import fold_parts
from actionspan.features.collect import MOTION, STREAMS
from actionspan.features.footage import shared_footage
from actionspan.storage.writing import create_h5, open_h5
from actionspan.temporal.labels import divide_steps
from actionspan.video.marks import Marks, marks_of

Array = NDArray[np.floating]

SIMILARITY = 0.9  # cosine of two snippets' centred features above which they show the same footage
FEWEST = 8  # snippets left of a video below which it is dropped


@dataclass(frozen=True, kw_only=True)
class Footage:
    """One video: what is known of it, and its snippets' features by stream, one row a snippet."""

    video: Video
    instances: tuple[Instance, ...]
    times: Array  # (N,) centres of the snippets in seconds
    rows: Mapping[str, Array]  # (N, C) of a stream, (N,) of a motion curve
    marks: Marks = field(default_factory=Marks)

    def annotation(self, subset: str) -> Annotation:
        """Return its row of annotations.json."""
        return Annotation(
            video_id=self.video.video_id,
            subset=subset,
            duration_seconds=self.video.duration_seconds,
            instances=self.instances,
        )


@dataclass(frozen=True, kw_only=True)
class Fold:
    """The videos that a fold trains on and those it holds out."""

    training: list[Footage]
    held_out: list[Footage]


def read_footage(results: Path, subsets: Sequence[str] = ("training",)) -> list[Footage]:
    """Return the videos of a run's subsets that have features; no other video is read."""
    known = {one.video_id: one for one in read_annotations(results / "dataset/annotations.json")}
    videos = {one.video_id: one for one in read_videos(results / "dataset/videos.tsv")}
    found = []
    for shard in sorted((results / "features/shards").glob("*.h5")):
        with open_h5(shard) as file:
            for name in file:
                if name in videos and name in known and known[name].subset in subsets:
                    group = file[name]
                    found.append(
                        Footage(
                            video=videos[name],
                            instances=known[name].instances,
                            times=group["time"][:].astype(np.float64),
                            rows={key: group[key][:] for key in STREAMS + MOTION if key in group},
                            marks=marks_of(group),
                        )
                    )
    return sorted(found, key=lambda one: one.video.video_id)


def hashed_folds(
    videos: Sequence[Footage], folds: int, group: Callable[[str], str] = str
) -> list[Fold]:
    """Hold out the same videos as `actionspan dataset folds`, or whole groups of them.

    `group` returns the person or scene of a video's id, which is in one fold alone.

    Raises:
        ValueError: There are not enough groups for so many folds.
    """
    groups: dict[str, list[Footage]] = {}
    for one in videos:
        groups.setdefault(group(one.video.video_id), []).append(one)
    return [
        Fold(
            training=[one for name, own in groups.items() if name not in part for one in own],
            held_out=[one for name in part for one in groups[name]],
        )
        for part in fold_parts(groups, folds)
    ]


def footage_folds(videos: Sequence[Footage], folds: int) -> list[Fold]:
    """Divide footage, not videos: each side has the rest of every video, joined.

    For sets spliced from clips that occur in many videos, of which folds of full videos would leave
    next to nothing. Snippets are compared by the first stream, centred. A rest of fewer than
    `FEWEST` snippets is dropped.
    """
    stream = next(key for key in STREAMS if key in videos[0].rows)
    mean = np.concatenate([one.rows[stream] for one in videos]).mean(axis=0)
    centred = [(one.rows[stream] - mean).astype(np.float32) for one in videos]
    shown = shared_footage(centred, SIMILARITY)
    names = [one.video.video_id for one in videos]
    parts = divide_steps(dict(zip(names, shown, strict=True)), folds)

    def rests(kept: Callable[[Int64], NDArray[np.bool_]], mark: str) -> list[Footage]:
        cut = []
        for one in videos:
            keep = kept(parts[one.video.video_id])
            if keep.sum() >= FEWEST:
                rest = cut_footage(one, keep)
                name = one.video.video_id + mark
                cut.append(replace(rest, video=replace(rest.video, video_id=name)))
        return cut

    return [
        Fold(
            training=rests(lambda part, out=fold: part != out, ""),
            held_out=rests(lambda part, out=fold: part == out, f"-{fold}"),
        )
        for fold in range(folds)
    ]


def cut_footage(footage: Footage, keep: NDArray[np.bool_]) -> Footage:
    """Return a video that consists of the kept snippets, joined.

    A snippet reaches half-way to its neighbours, the outer ones to the video's ends. Times,
    duration and segments lose what is removed before and within them. A segment that lost
    something goes when less than one snippet of it is left: the rest is a snippet at its edge.
    Segments that come to touch stay apart. Cuts and bouts of the video are not kept.

    Args:
        footage: A video of N snippets.
        keep: (N,) which of them stay.
    """
    if keep.all():
        return footage
    times, duration = footage.times, footage.video.duration_seconds
    edges = np.concatenate([[0.0], (times[:-1] + times[1:]) / 2, [duration]])  # (N + 1,)
    left = np.concatenate([[0.0], np.cumsum(np.diff(edges) * keep)])  # (N + 1,) kept before each
    snippet = duration / len(times)
    instances = []
    for one in footage.instances:
        start, end = np.interp([one.start, one.end], edges, left).tolist()
        # a segment may reach over the video's end, where nothing is removed
        lost = (min(one.end, duration) - one.start) - (end - start)
        if end - start >= snippet or (lost < 1e-9 and end > start):
            instances.append(replace(one, start=start, end=end))
    whole = float(left[-1])
    assert all(0 <= one.start < one.end <= whole for one in instances)
    return Footage(
        video=replace(
            footage.video, frames=round(whole * footage.video.fps), duration_seconds=whole
        ),
        instances=tuple(instances),
        times=np.interp(times[keep], edges, left),
        rows={key: values[keep] for key, values in footage.rows.items()},
    )


def spliced_folds(path: Path, folds: int, videos: int = 60, seed: int = 0) -> list[Fold]:
    """Splice untrimmed videos from features of trimmed clips; folds share no clip.

    A video has 4 to 13 clips and a few more: instances of 1 to 3 clips of one of the classes 1 to
    5, and between them 1 to 5 clips of the classes 6 and up. A clip gives its first 8 to 25 rows,
    0.25 s each. Only clips of subset 1 are used.

    Args:
        path: An npz file: features (N, T, C), label (N,), subset (N,), ids and class_names.
        folds: How many parts the clips of each class are divided into, in their order.
        videos: How many videos, the same number from each part.
        seed: The same seed gives the same videos.
    """
    with np.load(path, allow_pickle=False) as file:
        features, labels, subsets = file["features"], file["label"], file["subset"]
        classes = [str(name) for name in file["class_names"]]
    part = np.full(len(labels), -1)
    for label in np.unique(labels):
        clips = np.flatnonzero((labels == label) & (subsets == 1))
        part[clips] = np.arange(len(clips)) * folds // max(1, len(clips))
    generator = np.random.default_rng(seed)
    parts: list[list[Footage]] = [[] for _ in range(folds)]
    for number in range(videos):
        pool = np.flatnonzero(part == number % folds)
        name = f"spliced_{number:03d}"
        parts[number % folds].append(_splice(name, features, labels, pool, classes, generator))
    return [
        Fold(
            training=[one for other in parts if other is not held_out for one in other],
            held_out=held_out,
        )
        for held_out in parts
    ]


def _splice(
    name: str,
    features: Array,
    labels: NDArray[np.int64],
    pool: NDArray[np.int64],
    classes: Sequence[str],
    generator: np.random.Generator,
    seconds: float = 0.25,
) -> Footage:
    """Splice one video from clips of the pool."""
    fewest = generator.integers(4, 14)
    action = generator.integers(1, 6)
    chosen, segments, end = [], [], 0
    while len(chosen) < fewest:
        acts = generator.random() < 0.4
        clips = pool[labels[pool] == action] if acts else pool[labels[pool] > 5]
        start = end
        for _ in range(generator.integers(1, 4) if acts else generator.integers(1, 6)):
            clip = features[generator.choice(clips)].astype(np.float32)
            chosen.append(clip[: generator.integers(8, 26)])
            end += len(chosen[-1])
        if acts and segments and segments[-1][1] == start:
            segments[-1][1] = end
        elif acts:
            segments.append([start, end])
    rows = np.concatenate(chosen)
    video = Video(
        video_id=name,
        path=Path(),
        fps=1 / seconds,
        frames=len(rows),
        duration_seconds=len(rows) * seconds,
        width=0,
        height=0,
        sha256="",
    )
    return Footage(
        video=video,
        instances=tuple(
            Instance(start=start * seconds, end=stop * seconds, label=classes[action - 1])
            for start, stop in segments
        ),
        times=(np.arange(len(rows)) + 0.5) * seconds,
        rows={"external": rows},
    )


def write_fold(folder: Path, fold: Fold, subset: str) -> None:
    """Write a fold as a run's files: shard.h5, videos.tsv and annotations.json.

    Args:
        folder: Where to; it is made.
        fold: The videos.
        subset: What the held-out videos are called: testing, which no training looks at, or
            validation, by which it chooses epochs.
    """
    subsets = {
        **{one.video.video_id: "training" for one in fold.training},
        **{one.video.video_id: subset for one in fold.held_out},
    }
    everything = sorted(fold.training + fold.held_out, key=lambda one: one.video.video_id)
    assert len(subsets) == len(everything), "a video is on both sides"
    folder.mkdir(parents=True)
    with create_h5(folder / "shard.h5", "") as file:
        for one in everything:
            group = file.create_group(one.video.video_id)
            group["time"] = one.times
            for key, values in one.marks._asdict().items():
                group[key] = values
            for key, values in one.rows.items():
                group[key] = values
    videos = [replace(one.video, subset=subsets[one.video.video_id]) for one in everything]
    write_videos(folder / "videos.tsv", videos, VIDEO_COLUMNS)
    annotations = [one.annotation(subsets[one.video.video_id]) for one in everything]
    write_annotations(folder / "annotations.json", annotations)
