"""Consecutive frames at a rate of their own, which networks of video see.

Sample j is the frame shown nearest to j / `clip_rate` seconds, the earlier of two that are as
near. Samples go up to the last frame's time stamp. A frame that several samples take is kept once.
"""

import math

import h5py
import numpy as np

from actionspan.arrays import UInt8
from actionspan.files.storage import append_rows
from actionspan.video.decode import Frame
from actionspan.video.pictures import fitted_size, resized
from actionspan.video.settings import FrameSettings

_BLOCK = 16  # frames written at once: memory does not grow with the video
_ROUNDING = 1e-6  # seconds: times this close are the same


class ClipWriter:
    """Writes a video's samples while another reader goes through its frames.

    Args:
        group: Gets `clip` (K, h, w, 3), the frames kept, with the attribute `rate`, and `clip_row`
            (M,): the row of `clip` that each sample shows.
        settings: `clip_rate` and `clip_side`.
    """

    def __init__(self, group: h5py.Group, settings: FrameSettings) -> None:
        self.group, self.settings = group, settings
        self.size: tuple[int, int] | None = None
        self.previous: Frame | None = None
        self.samples, self.kept = 0, 0
        self.pictures: list[UInt8] = []  # not written yet
        self.rows: list[int] = []

    def add(self, frame: Frame) -> None:
        """Take the video's next frame; the one before it is kept if samples are nearest to it."""
        if self.previous is not None:
            self._keep_until((self.previous.seconds + frame.seconds) / 2)
        self.previous = frame

    def close(self) -> None:
        """Write what is left, after the last frame."""
        if self.previous is None:
            return
        self._keep_until(self.previous.seconds)
        self._write()
        self.group["clip"].attrs["rate"] = self.settings.clip_rate

    def _keep_until(self, seconds: float) -> None:
        """Give the previous frame the samples up to a time."""
        end = math.floor((seconds + _ROUNDING) * self.settings.clip_rate) + 1
        if end <= self.samples:
            return
        assert self.previous is not None
        picture = self.previous.picture()
        height, width, _ = picture.shape
        self.size = self.size or fitted_size(height, width, self.settings.clip_side)
        self.pictures.append(resized(picture, self.size))
        self.rows += [self.kept] * (end - self.samples)
        self.samples, self.kept = end, self.kept + 1
        if len(self.pictures) == _BLOCK:
            self._write()

    def _write(self) -> None:
        if self.pictures:
            append_rows(self.group, "clip", np.stack(self.pictures))
            append_rows(self.group, "clip_row", np.array(self.rows))
            self.pictures, self.rows = [], []
