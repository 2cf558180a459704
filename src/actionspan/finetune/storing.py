"""The snippets of untrimmed videos as JPEG pictures, resumable by video.

Frames and flow are deleted once features are made of them; this store, a few MB a video, stays. A
video is an HDF5 group as `video.jpegs` writes it, a position for each snippet, with copies
of `frame_difference` and `flow_magnitude` (T,), the attributes `fps`, `frame_count`,
`duration_seconds` and `snippet_frames` of the video stage, `snippets` T and `video_sha256`.
"""

from pathlib import Path
from typing import NamedTuple

import cv2
import h5py

from actionspan.errors import InputError
from actionspan.files.storage import digest, open_h5
from actionspan.finetune.store import StoreSettings
from actionspan.running.parts import map_videos
from actionspan.running.shards import ShardWork
from actionspan.settings import to_json
from actionspan.video.earlier import read_made
from actionspan.video.jpegs import Position, write_jpegs

_COPIED = ("frame_difference", "flow_magnitude")
_WITHIN = "sha256"  # of the video in the video stage; here of the pictures, as in all such stores


class _Source(NamedTuple):
    """What a process needs to store a video."""

    frames: Path
    flow: Path
    video_id: str
    settings: StoreSettings


def store_snippets(
    frames: Path,
    flow: Path,
    out: Path,
    settings: StoreSettings,
    how: ShardWork | None = None,
) -> dict[str, str]:
    """Write the snippets of a shard's videos into the store `out`.

    `frames` and `flow` are the shard's files of `video frames` and `video flow`.

    Returns:
        The reasons of the rejected videos by video id.

    Raises:
        InputError: A file is incomplete, or the frames lack a video.
    """
    made = read_made(frames, flow)
    names = list(made.hashes)
    common = digest("snippets", settings, digest(*made.digests))
    digests = [digest(common, each) for each in made.hashes.values()]
    return map_videos(
        out,
        names,
        [_Source(frames, flow, name, settings) for name in names],
        digests,
        _work,
        title="storing snippets",
        how=how,
        before=made.rejected,
        settings_digest=digest(common, digests),
        attributes={"settings": to_json(made.settings, snippets=settings)},
    )


def _work(source: _Source, group: h5py.Group) -> None:
    cv2.setNumThreads(1)
    settings, name = source.settings, source.video_id
    with open_h5(source.frames) as frame_file, open_h5(source.flow) as flow_file:
        rgb, flow = frame_file[name]["rgb"], flow_file[name]
        planes, seconds = flow["flow"], flow["time"][:]
        if not len(rgb) == len(planes) == len(seconds):
            raise InputError(
                f"{source.flow}: {name} has {len(planes)} snippets, {source.frames} has "
                f"{len(rgb)}: make the flow of these frames"
            )
        # the video's facts first: the pictures have a sha256 of their own
        facts = dict(flow.attrs)
        group.attrs.update({key: value for key, value in facts.items() if key != _WITHIN})
        group.attrs.update(video_sha256=facts[_WITHIN], snippets=len(seconds))
        write_jpegs(
            group,
            (Position(rgb[t], planes[t], float(seconds[t])) for t in range(len(seconds))),
            height=settings.height,
            width=settings.width,
            quality=settings.jpeg_quality,
            bound=float(planes.attrs["bound"]),
        )
        for key in _COPIED:
            if key in flow:
                group[key] = flow[key][:]
