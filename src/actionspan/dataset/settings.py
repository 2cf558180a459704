"""Settings and flags that other stages have, too: the largest videos, the length of points."""

import argparse
from dataclasses import dataclass
from typing import Any

from actionspan.errors import InputError
from actionspan.settings import Checked, option


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the flags that `how_read` reads."""
    length = "length of events that are points in time, half of it on either side (default: they "
    length += "are left out)"
    parser.add_argument("--points", type=float, default=0.0, metavar="SECONDS", help=length)
    also = "take what `actionspan review` has saved of videos that are not ticked Done, too"
    parser.add_argument("--not-done", action="store_true", help=also)


def how_read(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return arguments of `read_annotation_file`."""
    return {"points": arguments.points, "not_done": arguments.not_done}


@dataclass(frozen=True, kw_only=True)
class LimitSettings(Checked):
    """The largest videos that are decoded: a damaged header may claim any size."""

    max_pixels: int = option(
        36_000_000,
        "a video with larger frames is rejected; 8K has 33 to 35 million, and decoding takes "
        "up to about 45 bytes of memory for each",
        unit="pixels",
        least=1,
        most=2**31 - 1,
    )
    max_frames: int = option(
        5_000_000, "a longer video is rejected; 46 hours at 30 a second", unit="frames", least=1
    )

    def check(self, width: int, height: int, frames: int) -> None:
        """Check the size of a video.

        Raises:
            InputError: It is beyond a limit.
        """
        if width * height > self.max_pixels:
            raise InputError(
                f"frames of {width}×{height} pixels are more than video.max_pixels, "
                f"{self.max_pixels}; raise it if they are real"
            )
        if frames > self.max_frames:
            raise InputError(
                f"more frames than video.max_frames, {self.max_frames}; cut the video or raise it"
            )
