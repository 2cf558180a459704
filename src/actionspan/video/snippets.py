"""Snippets of a video: the centre frame in RGB, and the grey frames around it that flow needs.

Snippet k covers frames S·k … S·k + S − 1 (S = `snippet_frames`) and its centre is frame
c = S·k + S//2. A snippet exists where its centre does; a video shorter than that has one, centred
on its last frame. Its grey frames are c − L//2 … c − L//2 + L, clamped to the video. Its time is
the centre frame's own time stamp, which for a constant rate is (S·k + S//2) / fps.
"""

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import cv2
import h5py
import numpy as np

from actionspan.arrays import UInt8
from actionspan.dataset.tables import Video
from actionspan.errors import InputError
from actionspan.files.storage import append_rows, digest
from actionspan.running.parts import map_videos
from actionspan.running.shards import ShardWork
from actionspan.settings import to_json
from actionspan.video.clips import ClipWriter
from actionspan.video.decode import Frame, read_frames
from actionspan.video.earlier import (
    earlier_features,
    recipe_attribute,
    recipe_digest,
    take_features,
)
from actionspan.video.pictures import fitted_size, resized
from actionspan.video.settings import FrameSettings, LimitSettings

_BLOCK = 16  # snippets written at once: memory does not grow with the video


class Snippet(NamedTuple):
    """What is kept of one snippet."""

    rgb: UInt8  # (H, W, 3) the centre frame
    gray: UInt8  # (L + 1, H, W) consecutive frames around it
    seconds: float  # time stamp of the centre frame


def snippets(
    path: Path, settings: FrameSettings, limits: LimitSettings | None = None
) -> Iterator[Snippet]:
    """Yield the snippets of a video file, decoded once, as soon as their frames are there.

    Raises:
        InputError: The file is not a video, it is beyond the limits, or its decoding breaks off.
    """
    return cut_snippets(read_frames(path, limits=limits), settings)


def cut_snippets(frames: Iterable[Frame], settings: FrameSettings) -> Iterator[Snippet]:
    """Yield the snippets of a sequence of frames; only the frames kept are converted."""
    length, half = settings.snippet_frames, settings.snippet_frames // 2
    before, stack = settings.stack // 2, settings.stack
    gray: dict[int, UInt8] = {}  # by frame: those that the next snippets need
    waiting: list[tuple[int, UInt8, float]] = []  # centre frame, its picture and time
    size, count, next_centre = (0, 0), 0, half
    rgb, seconds = np.zeros((0, 0, 3), np.uint8), 0.0

    def snippet(centre: int, rgb: UInt8, seconds: float) -> Snippet:
        window = range(centre - before, centre - before + stack + 1)
        return Snippet(rgb, np.stack([gray[min(max(i, 0), count - 1)] for i in window]), seconds)

    for index, frame in enumerate(frames):
        count = index + 1
        # Before the first centre every frame is kept: the video may end before it.
        if index >= half and (index - half + before) % length > stack:
            continue
        # Convert the frame.
        rgb, seconds = frame.picture(), frame.seconds
        size = size if index else fitted_size(*rgb.shape[:2], settings.short_side)
        rgb = resized(rgb, size)
        gray[index] = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
        # Yield the snippets it completes, and drop the frames no longer needed.
        if index == next_centre:
            waiting.append((index, rgb, seconds))
            next_centre += length
        while waiting and index >= waiting[0][0] - before + stack:
            yield snippet(*waiting.pop(0))
        first_needed = (waiting[0][0] if waiting else next_centre) - before
        for old in [i for i in gray if i < first_needed and index >= half]:
            del gray[old]
    # The video's end: a video shorter than its first centre has one snippet.
    if 0 < count <= half:
        waiting.append((count - 1, rgb, seconds))
    for centre in waiting:
        yield snippet(*centre)


def frame_differences(gray: UInt8) -> float:
    """Return the mean absolute difference of consecutive frames (L + 1, h, w), 0 … 1."""
    sums = [cv2.norm(first, second, cv2.NORM_L1) for first, second in pairwise(gray)]
    return float(np.mean(sums) / (255 * gray[0].size))


def write_frames(
    video: Video,
    group: h5py.Group,
    settings: FrameSettings,
    limits: LimitSettings | None = None,
) -> None:
    """Decode a video and write its snippets, a block at a time.

    Args:
        video: The probed file.
        group: Gets `rgb` (T, H, W, 3), `gray` (T, L + 1, H, W), `time` (T,) in seconds and
            `frame_difference` (T,) 0 … 1; with `clips` also what `ClipWriter` writes.
        settings: What is kept.
        limits: The largest picture and the most frames that are decoded.

    Raises:
        InputError: The file is not a video, it is beyond the limits, or its decoding breaks off.
    """
    count = 0
    clips = ClipWriter(group, settings) if settings.clips else None

    def counted() -> Iterator[Frame]:
        nonlocal count
        for frame in read_frames(video.path, limits=limits):
            count += 1
            if clips:
                clips.add(frame)
            yield frame

    remaining = cut_snippets(counted(), settings)
    while block := list(islice(remaining, _BLOCK)):
        append_rows(group, "rgb", np.stack([snippet.rgb for snippet in block]))
        append_rows(group, "gray", np.stack([snippet.gray for snippet in block]))
        append_rows(group, "time", np.array([snippet.seconds for snippet in block]))
        differences = [frame_differences(snippet.gray) for snippet in block]
        append_rows(group, "frame_difference", np.array(differences, np.float32))
    if count == 0:
        raise InputError(f"{video.path}: no frame can be decoded")
    if clips:
        clips.close()
    group.attrs.update(video.attributes)
    group.attrs.update(frame_count=count, snippet_frames=settings.snippet_frames)


def frames_of_shard(
    videos: list[Video],
    out: Path,
    settings: FrameSettings,
    how: ShardWork | None = None,
    limits: LimitSettings | None = None,
    recipe: Path | None = None,
) -> dict[str, str]:
    """Write the snippets of a shard's videos, except those whose row has an error.

    Args:
        videos: The shard's rows, as they were probed.
        out: The file to write.
        settings: What is kept.
        how: How many videos at once, and what happens where the work on one fails.
        limits: The largest picture and the most frames that are decoded.
        recipe: What features are made by; of a video whose features by the same recipe stand, these
            are written in place of its snippets.

    Returns:
        The reasons of the rejected videos by video id.
    """
    good = [video for video in videos if not video.error]
    made_by, earlier = recipe_digest(recipe), earlier_features(good, recipe)
    digests = [digest("video frames", settings, made_by, video.sha256) for video in good]
    return map_videos(
        out,
        [video.video_id for video in good],
        [
            _Source(video, settings, limits or LimitSettings(), earlier.get(video.video_id))
            for video in good
        ],
        digests,
        _work,
        title="decoding",
        how=how,
        settings_digest=digest(digests),
        attributes={"settings": to_json(frames=settings), **recipe_attribute(made_by)},
    )


class _Source(NamedTuple):
    """What a process needs to decode a video."""

    video: Video
    settings: FrameSettings
    limits: LimitSettings
    earlier: Path | None  # a file that has its features


def _work(source: _Source, group: h5py.Group) -> None:
    cv2.setNumThreads(1)
    if not take_features(source.earlier, source.video, group):
        write_frames(source.video, group, source.settings, source.limits)
