"""Store instances and background of a shard's training videos as clips.

Videos of the data set's own validation and testing subsets are never used; some of the training
videos are held out to validate the classifiers. Frames and flow are those that the video stage
made: nothing is decoded again.

Background lies further than a margin from every instance. It is cut into stretches no longer than a
typical instance, so that the length of a clip does not reveal its class.
"""

import argparse
import itertools
import math
import statistics
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from actionspan.annotations.tables import Annotation, read_annotations, read_name
from actionspan.arrays import Float64
from actionspan.errors import InputError, naming
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import ShardWork, add_shard_flags, shard_work
from actionspan.recognition.clip_lists import BACKGROUND, ClipSettings, held_out_names
from actionspan.settings import from_arguments
from actionspan.storage.text import hash_of
from actionspan.storage.writing import digest, open_h5
from actionspan.video.earlier import read_made

_AMBIGUOUS = "Ambiguous"  # THUMOS14's label of a possible action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    inputs = {
        "frames": "video/frames/{shard}.h5",
        "flow": "video/flow/{shard}.h5",
        "annotations": "dataset/annotations.json",
    }
    add_shard_flags(parser, ClipSettings, inputs=inputs, processes="clips at once, one core each")


def run(arguments: argparse.Namespace) -> None:
    """Store the clips of one shard."""
    settings, how = from_arguments(ClipSettings, arguments), shard_work(arguments)
    files = (arguments.frames, arguments.flow, arguments.annotations, arguments.out)
    segments_of_shard(*files, settings, how)


class Segment(NamedTuple):
    """A stretch of a video in seconds, the end not included, and its class."""

    start: float
    end: float
    label: str


def subsets_of_videos(annotations: Collection[Annotation], fraction: float) -> dict[str, str]:
    """Return training or validation for each training video of the data set.

    A `fraction` of them is held out, by a hash of their ids.
    """
    names = [video.video_id for video in annotations if video.subset == "training"]
    held_out = set(held_out_names(names, fraction))
    return {name: "validation" if name in held_out else "training" for name in names}


def typical_seconds(annotations: Collection[Annotation]) -> float:
    """Return the median length of the training videos' instances in seconds.

    Raises:
        InputError: They have none.
    """
    training = [video for video in annotations if video.subset == "training"]
    lengths = [end - start for video in training for start, end, _ in _instances(video)]
    if not lengths:
        raise InputError("no training video has an instance: there is nothing to recognise")
    return statistics.median(lengths)


def video_segments(video: Annotation, longest: float, settings: ClipSettings) -> list[Segment]:
    """Return the clips of a video in order of time: each instance, and background between them.

    A stretch of background has at most `longest` seconds; the settings give its distance from
    instances, and its amount.
    """
    instances = _instances(video)
    if not settings.background:
        return sorted(instances)
    stretches = []
    for begin, end in _gaps(video, settings.background_margin):
        parts = math.ceil((end - begin) / longest)
        edges = np.linspace(begin, end, parts + 1).tolist()
        stretches += [Segment(*pair, BACKGROUND) for pair in itertools.pairwise(edges)]
    most = settings.background_ratio * max(1, len(instances))
    if len(stretches) > most:
        # by chance, but always the same ones
        stretches.sort(key=lambda segment: hash_of(f"{video.video_id} {segment.start:.6f}"))
        stretches = stretches[: max(1, round(most))]
    return sorted(instances + stretches)


def rows_of_segment(segment: Segment, seconds: Float64) -> tuple[int, ...]:
    """Return the snippets with a centre, one of the (T,) rising `seconds`, in a segment.

    An instance too short to hold one has the snippet nearest to its middle, if the middle is at
    most as far from it as half the usual distance of snippets; a stretch of background has none.
    """
    inside = np.flatnonzero((seconds >= segment.start) & (seconds < segment.end))
    if len(inside) or segment.label == BACKGROUND:
        return tuple(inside.tolist())
    middle = (segment.start + segment.end) / 2
    nearest = int(np.abs(seconds - middle).argmin())
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else math.inf
    return (nearest,) if abs(seconds[nearest] - middle) <= step / 2 else ()


def _instances(video: Annotation) -> list[Segment]:
    clear = [each for each in video.instances if each.label != _AMBIGUOUS]
    return [Segment(each.start, each.end, each.label) for each in clear]


def _gaps(video: Annotation, margin: float) -> Iterator[tuple[float, float]]:
    """Yield begin and end of each gap, which is `margin` seconds from every instance."""
    begin = 0.0
    for instance in sorted(video.instances, key=lambda instance: instance.start):
        if instance.start - margin > begin:
            yield begin, instance.start - margin
        begin = max(begin, instance.end + margin)
    if video.duration_seconds > begin:
        yield begin, video.duration_seconds


class _Clip(NamedTuple):
    """A clip to write."""

    video_id: str
    rows: tuple[int, ...]  # snippets of the video
    label: str
    subset: str


def segments_of_shard(
    frames: Path,
    flow: Path,
    annotations: Path,
    out: Path,
    settings: ClipSettings,
    how: ShardWork | None = None,
) -> dict[str, str]:
    """Write the clips of a shard's training videos; a file without clips where it has none.

    Clips are named after the video and their number in it: `{video_id}.000`, …. Frames and flow are
    the shard's; the annotations are the canonical ones of all videos. Returns the reasons of the
    rejected clips by id.

    Raises:
        InputError: A file is incomplete, or no training video has an instance.
    """
    # 1. choose the clips
    videos = {video.video_id: video for video in read_annotations(annotations)}
    with naming(annotations):
        longest = typical_seconds(videos.values())
    subsets = subsets_of_videos(videos.values(), settings.validation_fraction)
    clips: dict[str, _Clip] = {}
    made = read_made(frames, flow)
    made_of = digest(*made.digests)
    with open_h5(flow) as flow_file:
        for name in made.hashes:
            if name not in subsets:
                continue
            seconds = flow_file[name]["time"][:]
            for number, segment in enumerate(video_segments(videos[name], longest, settings)):
                rows = rows_of_segment(segment, seconds)
                if rows or segment.label != BACKGROUND:
                    clip = _Clip(name, rows, segment.label, subsets[name])
                    clips[f"{name}.{number:03d}"] = clip
    # 2. write them
    digests = [digest("segment", made_of, settings, *clip) for clip in clips.values()]
    return map_videos(
        out,
        list(clips),
        list(clips.values()),
        digests,
        partial(_work, frames, flow, settings),
        title="storing segments",
        how=how,
        settings_digest=digest(made_of, digests),
        attributes={"data": read_name(annotations)},
    )


def _work(frames: Path, flow: Path, settings: ClipSettings, clip: _Clip, group: h5py.Group) -> None:
    import cv2

    from actionspan.recognition.clip_store import write_clip
    from actionspan.video.jpegs import Position

    cv2.setNumThreads(1)
    name, rows, label, subset = clip
    if not rows:
        raise InputError(f"{name}: no frame lies in an instance of {label}")
    with open_h5(frames) as frame_file, open_h5(flow) as flow_file:
        rgb, planes = frame_file[name]["rgb"], flow_file[name]["flow"]
        seconds, bound = flow_file[name]["time"], float(planes.attrs["bound"])
        positions = (Position(rgb[row], planes[row], float(seconds[row])) for row in rows)
        write_clip(group, positions, settings, label=label, subset=subset, bound=bound)
