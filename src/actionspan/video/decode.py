"""The frames of a video file, each decoded once, in order and never by seeking.

Seeking (decord's `get_batch` and `skip_frames`) gives wrong frames in H.265 and in MPEG-4 with
B-frames. Frames come as a player shows them, rotation applied, from the stream FFmpeg calls best.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import decord
import numpy as np
from numpy.typing import NDArray

from actionspan.errors import InputError

Picture = NDArray[np.uint8]  # (H, W, 3) RGB

decord.logging.set_level(decord.logging.QUIET)


class Frame(NamedTuple):
    """One decoded frame; `picture()` copies it out of the decoder, so call it for kept ones."""

    seconds: float  # its time stamp, from the start of the video
    picture: Callable[[], Picture]


def read_frames(path: Path) -> Iterator[Frame]:
    """Decode a video from its first frame to its last.

    Times are the file's own time stamps, so that a variable frame rate keeps its clock.

    Raises:
        InputError: The file does not open, or its decoding stops before its end.
    """
    try:
        reader = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=1)
        count = len(reader)
        stamps = np.asarray(reader.get_frame_timestamp(range(count)), np.float64).reshape(-1, 2)
    except Exception as error:  # decord raises errors of several unrelated classes
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0].rsplit("] ", 1)[-1][:120]
        raise InputError(f"{path}: cannot be decoded: {reason}") from None
    for index in range(count):
        try:
            picture = reader.next()
        except Exception:  # as above
            raise InputError(
                f"{path}: decoding stopped at frame {index} of {count}: the file is damaged; "
                "encode it anew or remove it"
            ) from None
        yield Frame(float(stamps[index, 0] - stamps[0, 0]), picture.asnumpy)
