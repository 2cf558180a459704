"""A video file's frames, decoded once, in order and never by seeking.

decord decodes. Its seeking gives wrong frames in H.265 and in MPEG-4 with B-frames, and so does
`skip_frames`, which seeks too; reading on with `next` is right. Even then it gets three things
wrong, each reproduced by a file made for the tests:

- it rewinds by a seek before the first frame, and in MPEG-TS that loses the first frames;
- where fewer frames can be shown than the file has packets (an edit list trims it, or it begins in
  the middle of a group of pictures), it fills the end with stale pictures;
- a frame whose rows are padded to 4 bytes or more a pixel comes back with that many channels.

The last is corrected. The other files, and what follows an error in decord, are read through PyAV,
which gives bitwise the same pictures (10-bit ones differ by rounding).
"""

import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import av
import cv2
import numpy as np
from av.video.frame import VideoFrame

from actionspan.arrays import UInt8
from actionspan.dataset.containers import opened
from actionspan.dataset.settings import LimitSettings
from actionspan.dataset.video_facts import Timeline, read_timeline
from actionspan.errors import InputError
from actionspan.running.apart import still_working

# At most this many frames, and a quarter of the file, may be missing at the end: streams that are
# cut without decoding lose a few.
_FRAMES_ALLOWED_TO_LACK = 16


def _import_decord() -> Any:
    """Import decord so that torch and PyAV keep working.

    On import, decord2 (3.4) makes libraries visible to the entire process that only it needs:

    - every NVIDIA library installed, for its builds that decode on a GPU. libnvblas is among them;
      its BLAS takes the place of torch's, and the first convolution ends the process ("CPU Blas
      library need to be provided", or a segmentation fault). The wheel used here needs none.
    - its own FFmpeg, whose functions PyAV's FFmpeg then calls instead of those it was built with:
      encoding H.265 fails once torch is loaded too.

    So the NVIDIA libraries are hidden from decord, and its own libraries stay private.
    """
    nvidia, visible = sys.modules.get("nvidia"), ctypes.RTLD_GLOBAL
    sys.modules["nvidia"] = None  # type: ignore[assignment]  # looks as if it were not installed
    ctypes.RTLD_GLOBAL = ctypes.RTLD_LOCAL  # type: ignore[misc]
    try:
        return importlib.import_module("decord")
    finally:
        ctypes.RTLD_GLOBAL = visible  # type: ignore[misc]
        del sys.modules["nvidia"]
        if nvidia is not None:
            sys.modules["nvidia"] = nvidia


decord = _import_decord()
decord.logging.set_level(decord.logging.QUIET)

_base = importlib.import_module("decord._ffi.base")
_own = (_base.DECORDError, _base.DECORDLimitReachedError)
# What its reader raises; StopIteration at the end, AssertionError for a file without frames.
DECORD_ERRORS: tuple[type[Exception], ...]
DECORD_ERRORS = (*_own, RuntimeError, AssertionError, StopIteration)


class Frame(NamedTuple):
    """One frame as displayed."""

    picture: Callable[[], UInt8]  # makes the (H, W, 3) RGB picture; frames not needed cost nothing
    seconds: float  # its time stamp, counted from the video's first frame


def read_frames(
    path: Path, *, steady: bool = False, limits: LimitSettings | None = None
) -> Iterator[Frame]:
    """Yield every frame of a file in the order of display, rotation applied.

    Args:
        path: The file.
        steady: Whether to decode no faster than frames are taken, through PyAV. decord decodes
            ahead without a bound where frames are taken slowly: gigabytes of a long file.
        limits: The largest picture and the most frames that are decoded.

    Raises:
        InputError: The file is not a video, it is beyond the limits, or its decoding breaks off.
    """
    limits = limits or LimitSettings()
    timeline = read_timeline(path, limits)
    done = 0
    if timeline.continuous and not steady:
        for picture in _decord_pictures(path):
            still_working()
            yield Frame(picture, timeline.at(done))
            done += 1
    if done < len(timeline):  # decord cannot read this file, or gave up early
        in_order = steady and timeline.continuous  # as decord would be: AVI has stamps of no use
        for stamp, picture in islice(_pyav_pictures(path, timeline, limits), done, None):
            still_working()
            at = timeline.at(done)
            yield Frame(picture, at if stamp is None or in_order else stamp - timeline.origin)
            done += 1
    lacking = len(timeline) - timeline.headless - done
    if lacking > min(_FRAMES_ALLOWED_TO_LACK, len(timeline) // 4):
        raise _stopped(path, done, timeline)


def has_eight_bits(path: Path) -> bool:
    """Return whether a file's colours have 8 bits, so that steady decoding gives the same bits."""
    try:
        with opened(path) as (_, stream):
            pixels = stream.format
            return pixels is not None and all(part.bits <= 8 for part in pixels.components)
    except (OSError, av.FFmpegError, InputError):
        return False  # reading it says why


def _decord_pictures(path: Path) -> Iterator[Callable[[], UInt8]]:
    """Yield the frames decord decodes; end early, without an error, where it cannot go on."""
    try:
        # The tolerance is a share of the frames: at this value the first stale picture is an error.
        reader = decord.VideoReader(str(path.absolute()), num_threads=1, fault_tol=1e-9)
        for _ in range(len(reader)):
            yield partial(_decord_picture, reader.next())
    except DECORD_ERRORS:
        return


def _decord_picture(frame: Any) -> UInt8:
    pixels: UInt8 = frame.asnumpy()
    height, width, channels = pixels.shape
    if channels != 3:  # rows padded to 4 bytes or more a pixel
        pixels = pixels.reshape(height, -1)[:, : 3 * width].reshape(height, width, 3)
    return pixels


def _pyav_pictures(
    path: Path, timeline: Timeline, limits: LimitSettings
) -> Iterator[tuple[float | None, Callable[[], UInt8]]]:
    """Yield the frames FFmpeg decodes through PyAV, each with its time stamp where it has one."""
    done = 0
    try:
        with opened(path) as (container, stream):
            stream.thread_type = "NONE"
            stream.codec_context.thread_count = 1
            for frame in container.decode(stream):
                limits.check(frame.width, frame.height, done)  # a stream may change its size
                stamped = frame.time is not None and not np.isnan(timeline.origin)
                yield frame.time if stamped else None, partial(pyav_picture, frame)
                done += 1
    except (OSError, av.FFmpegError):
        raise _stopped(path, done, timeline) from None


def pyav_picture(frame: VideoFrame) -> UInt8:
    """Return a frame that PyAV decoded as an (H, W, 3) RGB picture, rotation applied."""
    upright = np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
    return np.ascontiguousarray(upright, dtype=np.uint8)


def _stopped(path: Path, done: int, timeline: Timeline) -> InputError:
    return InputError(
        f"{path}: decoding stopped at frame {done} of {len(timeline)}: the file is damaged there; "
        "get it again or leave it out"
    )


def fitted_size(height: int, width: int, short_side: int) -> tuple[int, int]:
    """Return the height and width a frame is reduced to: never enlarged, its aspect kept, even."""
    scale = short_side / min(height, width)
    if scale >= 1:
        return height, width
    return 2 * max(1, round(height * scale / 2)), 2 * max(1, round(width * scale / 2))


def resized(picture: UInt8, size: tuple[int, int]) -> UInt8:
    """Return an (H, W, 3) picture at a height and width."""
    if picture.shape[:2] == size:
        return picture
    return np.asarray(cv2.resize(picture, size[::-1], interpolation=cv2.INTER_AREA), np.uint8)
