"""Store the snippets of a shard as JPEG images, to read them in many epochs.

Frames and flow are deleted once features are made of them; this store, a few MB a video, stays. It
is resumable by video. A video is an HDF5 group as `video.jpegs` writes it, a position for each
snippet, with copies of `frame_difference` and `flow_magnitude` (T,), the attributes `fps`,
`frame_count`, `duration_seconds` and `snippet_frames` of the video stage, `snippets` T and
`video_sha256`.
"""

import argparse
from functools import partial
from pathlib import Path

import h5py

from actionspan.errors import InputError
from actionspan.finetune.settings import StoreSettings
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import VIDEOS, ShardWork, add_shard_flags, shard_work
from actionspan.settings import from_arguments, to_json
from actionspan.storage.writing import digest, open_h5
from actionspan.video.earlier import read_made
from actionspan.video.settings import BOUTS, CUTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    inputs = {"frames": "video/frames/{shard}.h5", "flow": "video/flow/{shard}.h5"}
    out = "finetune/snippets/{shard}.h5"
    add_shard_flags(parser, StoreSettings, inputs=inputs, processes=VIDEOS, out=out)


def run(arguments: argparse.Namespace) -> None:
    """Store the snippets of one shard."""
    settings, how = from_arguments(StoreSettings, arguments), shard_work(arguments)
    store_snippets(arguments.frames, arguments.flow, arguments.out, settings, how)


def store_snippets(
    frames: Path, flow: Path, out: Path, settings: StoreSettings, how: ShardWork | None = None
) -> dict[str, str]:
    """Write the snippets of a shard's videos into the store `out`; return why some are rejected.

    `frames` and `flow` are the shard's files of `video frames` and `video flow`.

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
        names,
        digests,
        partial(_work, frames, flow, settings),
        title="storing snippets",
        how=how,
        before=made.rejected,
        settings_digest=digest(common, digests),
        attributes={"settings": to_json(made.settings, snippets=settings)},
    )


def _work(frames: Path, flow: Path, settings: StoreSettings, name: str, group: h5py.Group) -> None:
    import cv2

    from actionspan.video.jpegs import Position, write_jpegs

    cv2.setNumThreads(1)
    with open_h5(frames) as frame_file, open_h5(flow) as flow_file:
        rgb, video = frame_file[name]["rgb"], flow_file[name]
        planes, seconds = video["flow"], video["time"][:]
        if not len(rgb) == len(planes) == len(seconds):
            raise InputError(
                f"{flow}: {name} has {len(planes)} snippets, {frames} has {len(rgb)}: make the "
                "flow of these frames"
            )
        # the video's facts first: the images have a sha256 of their own, as in all such stores
        facts = dict(video.attrs)
        sha256 = facts.pop("sha256")
        group.attrs.update(facts, video_sha256=sha256, snippets=len(seconds))
        write_jpegs(
            group,
            (Position(*each) for each in zip(rgb, planes, seconds.tolist(), strict=True)),
            height=settings.height,
            width=settings.width,
            quality=settings.jpeg_quality,
            bound=float(planes.attrs["bound"]),
        )
        for key in ("frame_difference", "flow_magnitude", CUTS, BOUTS):
            if key in video:
                group[key] = video[key][:]
