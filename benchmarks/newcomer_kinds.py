"""Footage for newcomer.py, a folder of videos and annotations for each kind, and its judge.

Six videos a kind: the shortest of at least 15 s with three events or more. The included model
learned from other rendered scenes of the `demo` kind, and from no other kind here. Some of its
settings were chosen on videos of `rooms`, `cycles` and `fights`.
"""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from actionspan.annotations.tables import Annotation, Instance
from actionspan.dataset.completing import Truth
from actionspan.dataset.sharding import find_videos
from actionspan.dataset.video_facts import probe_video
from actionspan.evaluation.baseline import tiles
from actionspan.evaluation.reader import judge_list

VIDEOS, SHORTEST, FEWEST = 6, 15.0, 3  # videos a kind, seconds, events
SPLIT = {  # videos and annotations of real footage
    "rooms": ("rooms/videos", "rooms/annotations.json"),
    "cycles": ("cycles/videos", "cycles/annotations.json"),
    "fights": ("fights/untrimmed", "fights/annotations.json"),
}
SEED = 52  # of the rendered kind; the included model has seen seed 1
RATE = 15  # rows a second of the skeletons
SIZE = 320, 240
LIMBS = (  # columns of joints: from the hips up, the arms, the legs
    (None, 0, 1, 2),
    (1, 3, 4, 5, 6),
    (1, 7, 8, 9, 10),
    (None, 11, 12, 13, 14),
    (None, 15, 16, 17, 18),
)


@dataclass(frozen=True)
class Kind:
    """Footage of one kind: the files of its videos, their seconds, and all that happens."""

    name: str
    videos: Mapping[str, Path]
    seconds: Mapping[str, float]
    truth: Mapping[str, tuple[Instance, ...]]


def read_kind(folder: Path) -> Kind:
    """Read a folder of videos with their annotations, `annotations.` in any format."""
    videos = find_videos(folder)
    annotations = sorted(folder.glob("annotations.*"))
    if not videos or len(annotations) != 1:
        raise SystemExit(f"{folder}: needs videos, and one file annotations.json, .csv, …")
    known = Truth(annotations[0], videos)
    seconds = {name: probe_video(path).duration_seconds for name, path in videos.items()}
    truth = {name: known.within(name, seconds[name]) for name in videos}
    return Kind(folder.name, videos, seconds, truth)


class Judged(NamedTuple):
    """Events found by lists as long as the truth, and videos with a right first event."""

    found: int
    first: int


def read_list(path: Path) -> dict[str, np.ndarray]:
    """Return (N, 3) starts and ends in seconds and scores of the listed events of each video."""
    rows: dict[str, list[list[float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):  # the best first
            own = rows.setdefault(row["video_id"], [])
            times = [float(row[name]) for name in ("start_seconds", "end_seconds")]
            own.append([*times, 1 - len(own) / 1000])
    return {name: np.array(own) for name, own in rows.items()}


def judge(kind: Kind, names: Sequence[str], lists: Mapping[str, Any]) -> Judged:
    """Judge the lists of some videos."""
    known = [
        Annotation(
            video_id=name,
            subset="testing",
            duration_seconds=kind.seconds[name],
            instances=kind.truth[name],
        )
        for name in names
    ]
    events = sum(len(kind.truth[name]) for name in names)
    record = judge_list(known, {name: lists[name] for name in names if name in lists})
    first = record["first"]["1"]["recall"]
    return Judged(round(record["as_many"] * events), round(first * events))


def judge_parts(kind: Kind, names: Sequence[str], lists: Mapping[str, Any]) -> Judged:
    """Judge equal parts of the videos: the better of as many as events, and as many as listed."""
    counts = [{name: len(of[name]) for name in names if name in of} for of in (kind.truth, lists)]
    judged = [
        judge(
            kind,
            names,
            {
                name: np.column_stack(tiles(kind.seconds[name], parts))
                for name, parts in each.items()
                if parts
            },
        )
        for each in counts
    ]
    return Judged(*map(max, zip(*judged, strict=True)))


def make_kinds(data: Path, out: Path) -> list[Path]:
    """Make a folder for each kind out of the data sets; return them."""
    for name, (videos, annotations) in SPLIT.items():
        _copy(data / videos, data / annotations, out / name)
    rendered = out / ".rendered"
    words = ["dataset", "demo", "--out", rendered, "--videos", 12, "--seed", SEED, "--processes", 2]
    command = [sys.executable, "-m", "actionspan", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)
    _copy(rendered, rendered / "annotations.json", out / "demo")
    annotations = data / "kinect/annotations.json"
    (out / "figures").mkdir(parents=True)
    shutil.copy(annotations, out / "figures")
    rows = {path.stem: path for path in (data / "kinect/features").glob("*.npy")}
    for name in _chosen(annotations, rows):
        _write(out / f"figures/{name}.mp4", _draw(np.load(rows[name], allow_pickle=False)))
    return [out / name for name in (*SPLIT, "demo", "figures")]


def _chosen(annotations: Path, files: Mapping[str, Path]) -> list[str]:
    """Return the shortest videos with enough events."""
    database = json.loads(annotations.read_text())["database"]
    lengths = {
        name: database[name]["duration"]
        for name in sorted(files.keys() & database.keys())
        if database[name]["duration"] >= SHORTEST and len(database[name]["annotations"]) >= FEWEST
    }
    return sorted(lengths, key=lambda each: lengths[each])[:VIDEOS]


def _copy(folder: Path, annotations: Path, out: Path) -> None:
    """Copy the chosen videos of a folder, and the annotations."""
    out.mkdir(parents=True)
    videos = find_videos(folder)
    for name in _chosen(annotations, videos):
        shutil.copy(videos[name], out)
    shutil.copy(annotations, out / "annotations.json")


def _draw(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Draw each row of a skeleton as a figure in a still room with the noise of a camera.

    A row has 19 joints relative to the hips, the place of the hips, and their velocity, in metres.
    """
    width, height = SIZE
    noises = np.random.default_rng(0).normal(0, 3, (31, height, width, 1))
    for number, row in enumerate(rows):
        frame = np.full((height, width, 3), 150, np.uint8)
        frame[height * 3 // 4 :] = 110  # the floor
        hips = row[57:60]
        joints = row[:57].reshape(19, 3) + hips

        def spot(place: np.ndarray) -> tuple[int, int]:
            across, up = 300 * place[:2] / max(place[2], 0.5)
            return round(width / 2 + float(across)), round(height / 2 - float(up))

        for limb in LIMBS:
            places = [spot(hips if joint is None else joints[joint]) for joint in limb]
            for first, second in zip(places, places[1:], strict=False):
                cv2.line(frame, first, second, (40, 40, 60), 7, cv2.LINE_AA)
        cv2.circle(frame, spot(joints[2]), 11, (60, 80, 130), -1, cv2.LINE_AA)
        yield (frame + noises[number % len(noises)]).clip(0, 255).astype(np.uint8)


def _write(path: Path, frames: Iterator[np.ndarray]) -> None:
    """Write frames as a video that browsers play."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(RATE))
        stream.width, stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
