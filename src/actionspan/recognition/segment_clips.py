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
from actionspan.recognition.clip_writing import Position, write_clip
from actionspan.recognition.stretches import (
    rows_of_segment,
    subsets_of_videos,
    typical_seconds,
    video_segments,
)
from actionspan.running.parts import map_videos


class _Source(NamedTuple):
    """What a process needs to write one clip."""

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
    processes: int = 1,
) -> dict[str, str]:
    """Write the clips of a shard's training videos; a file without clips where it has none.

    Clips are named after the video and their number in it: `{video_id}.000`, ….

    Args:
        frames: HDF5 file of the video stage.
        flow: The same shard's flow.
        annotations: The canonical annotations of all videos.
        out: The HDF5 file to write.
        settings: Sizes, background and what is held out.
        processes: How many clips at once.

    Returns:
        The reasons of the rejected clips by id.

    Raises:
        InputError: A file is not whole, or no training video has an instance.
    """
    known = read_annotations(annotations)
    try:
        longest = typical_seconds(known)
    except InputError as error:
        raise InputError(f"{annotations}: {error}") from None
    subsets = subsets_of_videos(known, settings.validation_fraction)
    by_name = {each.video_id: each for each in known}
    sources: dict[str, _Source] = {}
    with open_h5(frames) as frame_file, open_h5(flow) as flow_file:
        made_of = digest(str(frame_file.attrs["digest"]), str(flow_file.attrs["digest"]))
        for name in flow_file:
            if name not in frame_file:
                raise InputError(f"{frames}: lacks {name}, which {flow} holds")
            if name not in subsets:
                continue
            seconds = flow_file[name]["time"][:]
            for number, segment in enumerate(video_segments(by_name[name], longest, settings)):
                rows = rows_of_segment(segment, seconds)
                if rows or segment.label != BACKGROUND:
                    sources[f"{name}.{number:03d}"] = _Source(
                        frames, flow, name, rows, segment.label, subsets[name], settings
                    )
    digests = [
        digest("segment", made_of, settings, source.video_id, source.rows, source.label,
               source.subset)
        for source in sources.values()
    ]  # fmt: skip
    return map_videos(
        out,
        list(sources),
        list(sources.values()),
        digests,
        _work,
        title="storing segments",
        processes=processes,
        settings_digest=digest(made_of, digests),
        attributes={"data": read_name(annotations)},
    )


def _work(source: _Source, group: h5py.Group) -> None:
    cv2.setNumThreads(1)
    if not source.rows:
        raise InputError(f"{source.video_id}: no frame lies in an instance of {source.label}")
    with open_h5(source.frames) as frame_file, open_h5(source.flow) as flow_file:
        video, planes = frame_file[source.video_id], flow_file[source.video_id]["flow"]
        seconds = flow_file[source.video_id]["time"]
        write_clip(
            group,
            (Position(video["rgb"][row], planes[row], float(seconds[row])) for row in source.rows),
            source.settings,
            label=source.label,
            subset=source.subset,
            bound=float(planes.attrs["bound"]),
        )
