"""Copies of videos that browsers do not play, in the folder of a review."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from actionspan.propose.result_folder import copy_path, lacks_copy, make_copy
from actionspan.propose.results import Result

_SAME_NS = 2 * 10**9  # between times of a video and its copy, which file systems may round


class Copies:
    """The copies of some videos; `wanted`: they are made where they are missing."""

    def __init__(self, folder: Path, videos: Mapping[str, Path], *, wanted: bool) -> None:
        self.wanted = wanted
        self._folder, self._videos = folder, videos

    def file(self, video_id: str) -> Path:
        """Return the file that a browser plays: the copy, if it was made of the video as it is."""
        path, copy = self._videos[video_id], copy_path(self._folder, video_id)
        with suppress(OSError):
            # one of another time was made of another video, or is a person's own
            if abs(copy.stat().st_mtime_ns - path.stat().st_mtime_ns) <= _SAME_NS:
                return copy
        return path

    def is_missing(self, result: Result) -> bool:
        """Return whether a video needs a copy that is not there."""
        return lacks_copy(self._folder, result, self._videos[result.video_id])

    def make(self, video_id: str) -> None:
        """Make the copy of a video.

        Raises:
            InputError: The video is damaged.
        """
        make_copy(self._folder, self._videos[video_id])

    def note(self, result: Result) -> str:
        """Return the line under a video that a browser may not play, else an empty text."""
        if not self.is_missing(result):
            return ""
        then = "; a copy that it can is on the way." if self.wanted else "."
        return f"Your browser may not play this file ({result.unplayable}){then}"
