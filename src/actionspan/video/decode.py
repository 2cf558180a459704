"""One pass over a video: the frames that snippets need, decoded in order and never by seeking.

Seeking (decord's `get_batch`, `skip_frames`) gives wrong frames in H.265 and in MPEG-4 with
B-frames, so every frame is decoded once, in order, and the wanted ones are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import decord
import numpy as np
from numpy.typing import NDArray

from actionspan.errors import InputError
from actionspan.video.settings import FrameSettings

decord.logging.set_level(decord.logging.QUIET)


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """What is kept of one snippet.

    `rgb` is (H, W, 3) uint8, the centre frame; `gray` is (L + 1, H, W) uint8, consecutive frames
    round the centre; `time` is the snippet's centre in seconds; `frame_difference` is the mean
    absolute grey difference of consecutive frames, 0…1.
    """

    rgb: NDArray[np.uint8]
    gray: NDArray[np.uint8]
    time: float
    frame_difference: float


def snippet_count(frames: int, snippet_frames: int) -> int:
    """Return how many snippets a video has: those whose centre frame exists, at least one."""
    centre = snippet_frames // 2
    return max(1, -(-(frames - centre) // snippet_frames))


def gray_frames(snippet: int, frames: int, settings: FrameSettings) -> NDArray[np.int64]:
    """Return the L + 1 consecutive frames of a snippet's flow, clamped to the video."""
    centre = snippet * settings.snippet_frames + settings.snippet_frames // 2
    first = centre - settings.stack // 2
    return np.clip(np.arange(first, first + settings.stack + 1), 0, frames - 1)


def centre_frame(snippet: int, frames: int, settings: FrameSettings) -> int:
    """Return the frame at a snippet's centre, clamped to the video."""
    return min(snippet * settings.snippet_frames + settings.snippet_frames // 2, frames - 1)


def snippet_times(stamps: NDArray[np.float64], settings: FrameSettings) -> NDArray[np.float64]:
    """Return the centre of each snippet in seconds.

    Args:
        stamps: (frames, 2) start and end of each frame in seconds, from the file's time stamps,
            so that variable frame rates keep their clock.
        settings: Frames a snippet.

    Returns:
        (T,): the middle between the start of a snippet's first frame and the end of its last.
    """
    count = snippet_count(len(stamps), settings.snippet_frames)
    first = np.minimum(np.arange(count) * settings.snippet_frames, len(stamps) - 1)
    last = np.minimum(first + settings.snippet_frames - 1, len(stamps) - 1)
    middles: NDArray[np.float64] = (stamps[first, 0] + stamps[last, 1]) / 2 - stamps[0, 0]
    return middles


def reduced_size(width: int, height: int, short_side: int) -> tuple[int, int]:
    """Return the size of a frame reduced to a short side, its shape kept; never enlarged."""
    scale = min(1.0, short_side / min(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def read_snippets(path: Path, settings: FrameSettings) -> Iterator[Snippet]:
    """Decode a video once and yield its snippets in order, one held in memory at a time.

    Frames come as a player shows them: rotation applied, from the stream FFmpeg calls best.

    Raises:
        InputError: The file does not open, or decoding stops before its end.
    """
    try:
        reader = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=1)
        frames = len(reader)
        stamps = np.asarray(reader.get_frame_timestamp(range(frames)), np.float64)
    except Exception as error:  # decord raises its own RuntimeErrors, some without a base class
        raise InputError(f"{path}: cannot be decoded: {_first_line(error)}") from None
    if frames == 0:
        raise InputError(f"{path}: has no frames")
    times = snippet_times(stamps.reshape(frames, 2), settings)
    grays: dict[int, NDArray[np.uint8]] = {}
    centre: NDArray[np.uint8] | None = None
    snippet = 0
    wanted = gray_frames(snippet, frames, settings)
    middle = centre_frame(snippet, frames, settings)
    last = max(int(wanted[-1]), middle)
    for index in range(frames):
        try:
            picture = reader.next()
        except Exception:  # as above
            raise InputError(
                f"{path}: decoding stopped at frame {index} of {frames}: the file is damaged; "
                "re-encode or remove it"
            ) from None
        if snippet == len(times) or index < min(int(wanted[0]), middle):
            continue  # decoding goes on to the end, so that damage anywhere is seen
        image = _reduced(picture.asnumpy(), settings.short_side)
        grays[index] = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        if index == middle:
            centre = image
        while snippet < len(times) and index == last:
            assert centre is not None
            gray = np.stack([grays[int(frame)] for frame in wanted])
            yield Snippet(
                rgb=centre,
                gray=gray,
                time=float(times[snippet]),
                frame_difference=_difference(gray),
            )
            snippet += 1
            wanted = gray_frames(snippet, frames, settings)
            middle = centre_frame(snippet, frames, settings)
            last = max(int(wanted[-1]), middle)
            grays = {frame: kept for frame, kept in grays.items() if frame >= int(wanted[0])}


def _reduced(image: NDArray[np.uint8], short_side: int) -> NDArray[np.uint8]:
    height, width = image.shape[:2]
    size = reduced_size(width, height, short_side)
    if size == (width, height):
        return image
    reduced: NDArray[np.uint8] = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return reduced


def _difference(gray: NDArray[np.uint8]) -> float:
    pairs = zip(gray[:-1], gray[1:], strict=True)
    return float(np.mean([cv2.absdiff(one, two).mean() for one, two in pairs])) / 255


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rsplit("] ", 1)[-1][:120]
