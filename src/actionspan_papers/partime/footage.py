"""Consecutive small grey frames of videos: how they are kept, and read again."""

from itertools import islice
from pathlib import Path

import cv2
import h5py
import numpy as np

from actionspan.arrays import Float32, UInt8
from actionspan.dataset.tables import Video
from actionspan.files.storage import create_h5, digest, open_h5
from actionspan.video.decode import read_frames
from actionspan_papers.partime.settings import StreamSettings


def write_footage(path: Path, videos: list[Video], settings: StreamSettings) -> None:
    """Write the frames of videos: `/{video}/gray` (T, h, w) and the attribute `fps`."""
    made_of = digest("partime frames", settings, [video.sha256 for video in videos])
    with create_h5(path, made_of) as file:
        for video in videos:
            group = file.create_group(video.video_id)
            group.attrs["fps"] = video.fps
            group["gray"] = _small_frames(video, settings)


def _small_frames(video: Video, settings: StreamSettings) -> UInt8:
    """Return (T, h, w) grey frames."""
    size = settings.width, settings.height
    most = max(2, round(settings.most_seconds * video.fps))
    frames = [
        cv2.resize(
            cv2.cvtColor(frame.picture(), cv2.COLOR_RGB2GRAY), size, interpolation=cv2.INTER_AREA
        )
        for frame in islice(read_frames(video.path), most)
    ]
    return np.stack(frames).astype(np.uint8)


class Footage:
    """The frames of the videos of a file that `write_footage` wrote.

    `videos` are (T, h, w) grey frames of 0 … 1, `rates` their frames a second; `mean` is the (h, w)
    mean frame of all and `spread` the root mean square of what is left without it.
    """

    def __init__(self, path: Path) -> None:
        with open_h5(path) as file:
            self.videos: list[Float32] = [_scaled(file[name]) for name in file]
            self.rates = [float(file[name].attrs["fps"]) for name in file]
        means = np.stack([video.mean(axis=0) for video in self.videos])
        self.mean: Float32 = means.mean(axis=0)
        left = [np.square(video - self.mean).mean() for video in self.videos]
        self.spread = max(float(np.sqrt(np.mean(left))), 1e-6)


def _scaled(group: h5py.Group) -> Float32:
    return np.asarray(group["gray"][:], np.float32) / np.float32(255)
