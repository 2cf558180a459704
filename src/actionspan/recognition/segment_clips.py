"""Clips out of untrimmed training videos, for each shard of the video stage.

Frames and flow are those that the video stage made: nothing is decoded again.
"""

from pathlib import Path
from typing import NamedTuple

import cv2
import h5py

from actionspan.dataset.tables import read_annotations, read_name
from actionspan.errors import InputError
from actionspan.files.storage import digest, open_h5
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.recognition.clip_store import BACKGROUND
from actionspan.recognition.clip_writing import write_clip
from actionspan.recognition.stretches import (
    rows_of_segment,
    subsets_of_videos,
    typical_seconds,
    video_segments,
)
from actionspan.running.parts import map_videos
from actionspan.running.shards import ShardWork
from actionspan.video.earlier import read_made
from actionspan.video.jpeg_writing import Position


class _Source(NamedTuple):
    """What a process needs to write a clip."""

    frames: Path
    flow: Path
    video_id: str
    rows: tuple[int, ...]  # snippets of the video
    label: str
    subset: str
    settings: ClipSettings


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
    the shard's; the annotations are the canonical ones of all videos.

    Returns:
        The reasons of the rejected clips by id.

    Raises:
        InputError: A file is incomplete, or no training video has an instance.
    """
    # choose the clips
    videos = {video.video_id: video for video in read_annotations(annotations)}
    try:
        longest = typical_seconds(videos.values())
    except InputError as error:
        raise InputError(f"{annotations}: {error}") from None
    subsets = subsets_of_videos(videos.values(), settings.validation_fraction)
    sources: dict[str, _Source] = {}
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
                    sources[f"{name}.{number:03d}"] = _Source(
                        frames, flow, name, rows, segment.label, subsets[name], settings
                    )
    # write them
    digests = [
        digest("segment", made_of, settings, *source[2:6])  # all but the paths
        for source in sources.values()
    ]
    return map_videos(
        out,
        list(sources),
        list(sources.values()),
        digests,
        _work,
        title="storing segments",
        how=how,
        settings_digest=digest(made_of, digests),
        attributes={"data": read_name(annotations)},
    )


def _work(source: _Source, group: h5py.Group) -> None:
    cv2.setNumThreads(1)
    if not source.rows:
        raise InputError(f"{source.video_id}: no frame lies in an instance of {source.label}")
    with open_h5(source.frames) as frame_file, open_h5(source.flow) as flow_file:
        rgb, flow = frame_file[source.video_id]["rgb"], flow_file[source.video_id]
        planes, seconds = flow["flow"], flow["time"]
        write_clip(
            group,
            (Position(rgb[row], planes[row], float(seconds[row])) for row in source.rows),
            source.settings,
            label=source.label,
            subset=source.subset,
            bound=float(planes.attrs["bound"]),
        )
