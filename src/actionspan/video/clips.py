"""Clips of a video for networks that see them: consecutive frames at a rate of their own.

Sample j is the frame shown nearest to j / `clip_rate` seconds, the earlier of two that are as near,
up to the last frame's time stamp. A frame that several samples take is kept once.
"""

import math
from collections.abc import Callable

import h5py
import numpy as np

from actionspan.arrays import UInt8
from actionspan.storage.writing import append_rows
from actionspan.video.decode import Frame, fitted_size, resized
from actionspan.video.settings import FrameSettings

_BLOCK = 16  # frames written at once: memory does not grow with the video
_ROUNDING = 1e-6  # seconds: times this close are the same


class ClipSampler:
    """Chooses a video's samples while another reader goes through its frames.

    `keep` is called with each frame (h, w, 3) that is kept, in order, and the number of samples
    that show it.
    """

    def __init__(self, settings: FrameSettings, keep: Callable[[UInt8, int], None]) -> None:
        self.settings, self.keep = settings, keep
        self.size: tuple[int, int] | None = None
        self.previous: Frame | None = None
        self.samples = 0

    def add(self, frame: Frame) -> None:
        """Take the video's next frame; the one before it is kept if samples are nearest to it."""
        if self.previous is not None:
            self._keep_until((self.previous.seconds + frame.seconds) / 2)
        self.previous = frame

    def close(self) -> None:
        """Give the last frame its samples."""
        if self.previous is not None:
            self._keep_until(self.previous.seconds)

    def _keep_until(self, seconds: float) -> None:
        """Give the previous frame the samples up to a time."""
        end = math.floor((seconds + _ROUNDING) * self.settings.clip_rate) + 1
        if end <= self.samples:
            return
        assert self.previous is not None
        picture = self.previous.picture()
        height, width, _ = picture.shape
        self.size = self.size or fitted_size(height, width, self.settings.clip_side)
        count, self.samples = end - self.samples, end
        self.keep(resized(picture, self.size), count)


class ClipWriter(ClipSampler):
    """Writes a video's samples.

    The group gets `clip` (K, h, w, 3), the frames kept, with the attribute `rate`, and `clip_row`
    (M,): the row of `clip` that each sample shows.
    """

    def __init__(self, group: h5py.Group, settings: FrameSettings) -> None:
        super().__init__(settings, self._take)
        self.group = group
        self.kept = 0
        self.pictures: list[UInt8] = []  # not written yet
        self.rows: list[int] = []

    def close(self) -> None:
        """Give the last frame its samples, and write the rest."""
        super().close()
        self._write()
        if self.kept:
            self.group["clip"].attrs["rate"] = self.settings.clip_rate

    def _take(self, picture: UInt8, samples: int) -> None:
        self.pictures.append(picture)
        self.rows += [self.kept] * samples
        self.kept += 1
        if len(self.pictures) == _BLOCK:
            self._write()

    def _write(self) -> None:
        if self.pictures:
            append_rows(self.group, "clip", np.stack(self.pictures))
            append_rows(self.group, "clip_row", np.array(self.rows))
            self.pictures, self.rows = [], []
