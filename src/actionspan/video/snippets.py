"""Snippets of a video: the centre frame in RGB, and the grey frames around it that flow needs.

Snippet k covers frames S·k … S·k + S − 1 (S = `snippet_frames`) and its centre is frame
c = S·k + S//2. A snippet exists where its centre does; a video shorter than that has one, centred
on its last frame. Its grey frames are c − L//2 … c − L//2 + L, clamped to the video. Its time is
the centre frame's own time stamp, which for a constant rate is (S·k + S//2) / fps.
"""

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise, tee
from pathlib import Path
from typing import NamedTuple

import cv2
import h5py
import numpy as np

from actionspan.annotations.tables import Video
from actionspan.arrays import Float32, Float64, Mask, UInt8
from actionspan.dataset.settings import LimitSettings
from actionspan.errors import InputError
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import ShardWork
from actionspan.settings import to_json
from actionspan.storage.writing import append_rows, digest
from actionspan.video import earlier
from actionspan.video.clips import ClipWriter
from actionspan.video.cuts import CutFinder
from actionspan.video.decode import Frame, fitted_size, read_frames, reduced, resized
from actionspan.video.decord_reader import decord
from actionspan.video.movers import SMALLEST_SHARE, squares
from actionspan.video.optical_flow import compute_flow
from actionspan.video.settings import BOUTS, CUTS, Decoder, FlowSettings, FrameSettings
from actionspan.video.stillness import STILL, StillFinder, own_rows
from actionspan.video.zones import (
    SHARE,
    WHOLE,
    ZONE_MOTION,
    Cameras,
    Zones,
    digests_of,
    only_inside,
    share_inside,
    zone_motion,
    zones_attributes,
    zones_of,
)

_BLOCK = 16  # snippets written at once: memory does not grow with the video


class Snippet(NamedTuple):
    """The frames kept of one snippet."""

    rgb: UInt8  # (H, W, 3) the centre frame
    gray: UInt8  # (L + 1, H, W) consecutive frames around it
    seconds: float  # time stamp of the centre frame
    mover: UInt8 | None = None  # (side, side, 3) what moves in the centre frame, if it is wanted
    still: bool = False  # looks as the last that is not, and has its arrays; see `stillness`


def snippets(
    path: Path, settings: FrameSettings, limits: LimitSettings | None = None
) -> Iterator[Snippet]:
    """Yield the snippets of a video file, decoded once, as soon as their frames are there.

    Raises:
        InputError: The file is not a video, it is beyond the limits, or its decoding breaks off.
    """
    return cut_snippets(read_frames(path, limits=limits), settings)


def cut_snippets(frames: Iterable[Frame], settings: FrameSettings) -> Iterator[Snippet]:
    """Yield the snippets of a sequence of frames; only the frames kept are converted.

    A still one has the arrays of the last that is not.
    """
    finder, last = StillFinder(), None
    for snippet in _with_squares(frames, settings):
        pictures = [snippet.rgb] if snippet.mover is None else [snippet.rgb, snippet.mover]
        if settings.still and finder(pictures, snippet.gray) and last is not None:
            yield last._replace(seconds=snippet.seconds, still=True)
        else:
            last = snippet
            yield snippet


def _with_squares(frames: Iterable[Frame], settings: FrameSettings) -> Iterator[Snippet]:
    if settings.mover_side == 0:
        yield from _cut_snippets(frames, settings)
        return
    # a square waits for the snippets behind it
    cut, seen = tee(_cut_snippets(frames, settings))
    views = (snippet.mover for snippet in seen if snippet.mover is not None)
    for snippet, square in zip(cut, squares(views, settings.mover_side), strict=True):
        yield snippet._replace(mover=square)


def _cut_snippets(frames: Iterable[Frame], settings: FrameSettings) -> Iterator[Snippet]:
    """Yield snippets with the whole image in the place of the square."""
    length, half = settings.snippet_frames, settings.snippet_frames // 2
    before, stack = settings.stack // 2, settings.stack
    gray: dict[int, UInt8] = {}  # by frame: those that the next snippets need
    waiting: list[tuple[int, UInt8, float, UInt8 | None]] = []  # centre frames with their images
    size, count, next_centre = (0, 0), 0, half
    picture = rgb = np.zeros((0, 0, 3), np.uint8)
    seconds = 0.0

    def snippet(centre: int, rgb: UInt8, seconds: float, view: UInt8 | None) -> Snippet:
        window = range(centre - before, centre - before + stack + 1)
        grays = np.stack([gray[min(max(i, 0), count - 1)] for i in window])
        return Snippet(rgb, grays, seconds, view)

    for index, frame in enumerate(frames):
        count = index + 1
        # Before the first centre every frame is kept: the video may end before it.
        if index >= half and (index - half + before) % length > stack:
            continue
        # 1. convert the frame
        picture, seconds = frame.picture(), frame.seconds
        size = size if index else fitted_size(*picture.shape[:2], settings.short_side)
        rgb = resized(picture, size)
        gray[index] = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
        # 2. yield the snippets it completes, and drop the frames no longer needed
        if index == next_centre:
            waiting.append((index, rgb, seconds, _view(picture, settings)))
            next_centre += length
        while waiting and index >= waiting[0][0] - before + stack:
            yield snippet(*waiting.pop(0))
        first_needed = (waiting[0][0] if waiting else next_centre) - before
        for old in [i for i in gray if i < first_needed and index >= half]:
            del gray[old]
    # 3. the video's end: a video shorter than its first centre has one snippet
    if 0 < count <= half:
        waiting.append((count - 1, rgb, seconds, _view(picture, settings)))
    for centre in waiting:
        yield snippet(*centre)


def _view(picture: UInt8, settings: FrameSettings) -> UInt8 | None:
    """Return the image that a square is cut from, hardly larger than the smallest one needs."""
    if settings.mover_side == 0:
        return None
    side = round(settings.mover_side / SMALLEST_SHARE)
    return reduced(picture, (side, side))


def frame_differences(gray: UInt8, zones: Zones = ()) -> float:
    """Return the mean absolute difference of consecutive frames (L + 1, h, w), 0 … 1.

    It is of the pixels inside the zones.
    """
    sums = [cv2.norm(first, second, cv2.NORM_L1) for first, second in pairwise(gray)]
    return float(np.mean(sums) / (255 * gray[0].size * share_inside(zones, *gray.shape[1:])))


class Batch(NamedTuple):
    """What `video frames` and `video flow` would write of B snippets, M of which are not still."""

    pictures: UInt8  # (M, H, W, 3) centre frames
    flow: UInt8  # (M, 2L, H, W) coded
    movers: UInt8 | None  # (M, side, side, 3) what moves in them, if it is wanted
    time: Float64  # (B,) of the centre frames in seconds
    frame_difference: Float32  # (B,) 0 … 1
    flow_magnitude: Float32  # (B,) pixels
    still: Mask  # (B,)
    zone_motion: Float32  # (B, Z), see `zone_motion`


def snippet_batches(
    frames: Iterable[Frame],
    settings: FrameSettings,
    flow: FlowSettings,
    size: int,
    zones: Zones = (),
) -> Iterator[Batch]:
    """Yield the snippets of a sequence of frames, `size` at a time and fewer at its end.

    With `zones` the frames show nothing outside them, see `only_inside`.

    Raises:
        InputError: The flow cannot be computed, or the frames are too small for it.
    """
    remaining, last = cut_snippets(frames, settings), np.float32(0)
    while snippets := list(islice(remaining, size)):
        still = np.array([snippet.still for snippet in snippets])
        own = [snippet for snippet in snippets if not snippet.still]
        gray = np.stack([snippet.gray for snippet in own or snippets])[: len(own)]
        planes, magnitude = compute_flow(gray, flow, share_inside(zones, *gray.shape[2:]))
        magnitude = np.append(last, magnitude)[own_rows(still) + 1]
        last = magnitude[-1]
        yield Batch(
            pictures=np.stack([snippet.rgb for snippet in own or snippets])[: len(own)],
            flow=planes,
            movers=_movers(own),
            time=np.array([snippet.seconds for snippet in snippets]),
            frame_difference=_differences(snippets, zones),
            flow_magnitude=magnitude,
            still=still,
            zone_motion=np.stack([zone_motion(snippet.gray, zones) for snippet in snippets]),
        )


def _differences(block: list[Snippet], zones: Zones) -> Float32:
    return np.array([frame_differences(snippet.gray, zones) for snippet in block], np.float32)


def _movers(block: list[Snippet]) -> UInt8 | None:
    found = [snippet.mover for snippet in block if snippet.mover is not None]
    return np.stack(found) if found else None


def write_frames(
    video: Video,
    group: h5py.Group,
    settings: FrameSettings,
    limits: LimitSettings | None = None,
    decoder: Decoder = "pyav",
    zones: Zones = (),
) -> None:
    """Decode a probed video and write its snippets, a block at a time.

    The group gets `rgb` (T, H, W, 3), `gray` (T, L + 1, H, W), `time` (T,) in seconds, `still` (T,)
    and `frame_difference` (T,) 0 … 1, and `cuts` (K, 2); with `mover_side` also `mover` (T, side,
    side, 3), with `clips` what `ClipWriter` writes, and with several zones `zone_motion` (T, Z).

    Raises:
        InputError: The file is not a video, it is beyond the limits, or its decoding breaks off.
    """
    # 1. all frames pass once: they are counted, cuts and clips are taken of them
    count, cuts = 0, CutFinder(zones)
    clips = ClipWriter(group, settings) if settings.clips else None

    def counted() -> Iterator[Frame]:
        nonlocal count
        decoded = read_frames(video.path, limits=limits, decoder=decoder)
        for frame in cuts.watch(only_inside(decoded, zones)):
            count += 1
            if clips:
                clips.add(frame)
            yield frame

    # 2. snippets, a block at a time
    remaining = cut_snippets(counted(), settings)
    while block := list(islice(remaining, _BLOCK)):
        append_rows(group, "rgb", np.stack([snippet.rgb for snippet in block]))
        append_rows(group, "gray", np.stack([snippet.gray for snippet in block]))
        movers = _movers(block)
        if movers is not None:
            append_rows(group, "mover", movers)
        append_rows(group, "time", np.array([snippet.seconds for snippet in block]))
        append_rows(group, STILL, np.array([snippet.still for snippet in block]))
        append_rows(group, "frame_difference", _differences(block, zones))
        if len(zones) > 1:
            moved = np.stack([zone_motion(snippet.gray, zones) for snippet in block])
            append_rows(group, ZONE_MOTION, moved)
    if count == 0:
        raise InputError(f"{video.path}: no frame can be decoded")
    # 3. the facts known at the end
    group[CUTS], group[BOUTS] = cuts.found(), cuts.bouts.found()
    if clips:
        clips.close()
    group.attrs.update(video.attributes | zones_attributes(zones))
    if zones:
        group.attrs[SHARE] = share_inside(zones, *group["gray"].shape[2:])
    group.attrs.update(frame_count=count, snippet_frames=settings.snippet_frames)


def frames_of_shard(
    videos: list[Video],
    out: Path,
    settings: FrameSettings,
    how: ShardWork | None = None,
    limits: LimitSettings | None = None,
    recipe: Path | None = None,
    decoder: Decoder = "pyav",
    cameras: Cameras = WHOLE,
) -> dict[str, str]:
    """Write the snippets of a shard's probed videos, except rows with an error.

    Of a video with features that an earlier run made by the same `recipe`, these are written. The
    zones of a video are found by its name among `cameras`.

    Returns:
        The reasons of the rejected videos by video id.
    """
    good = [video for video in videos if not video.error]
    by_name = {video.video_id: video for video in good}
    made_by, known = earlier.recipe_digest(recipe), earlier.earlier_features(good, recipe, cameras)
    digests = [
        digest("video frames", settings, decoder, made_by, each.sha256, *digests_of(cameras, name))
        for name, each in by_name.items()
    ]
    return map_videos(
        out,
        list(by_name),
        [
            _Source(each, settings, limits, decoder, known.get(name), zones_of(cameras, name))
            for name, each in by_name.items()
        ],
        digests,
        _work,
        title="decoding",
        how=how,
        prepare=decord if decoder == "decord" else None,  # not installed: no video's fault
        settings_digest=digest(digests),
        attributes={"settings": to_json(frames=settings), **earlier.recipe_attribute(made_by)},
    )


class _Source(NamedTuple):
    """The input of a process that decodes a video."""

    video: Video
    settings: FrameSettings
    limits: LimitSettings | None
    decoder: Decoder
    earlier: Path | None  # a file that has its features
    zones: Zones


def _work(source: _Source, group: h5py.Group) -> None:
    cv2.setNumThreads(1)
    if not earlier.take_features(source.earlier, source.video, group):
        how = source.settings, source.limits, source.decoder, source.zones
        write_frames(source.video, group, *how)
