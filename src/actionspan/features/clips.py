"""The clip stream: a network of video that sees consecutive frames at its own rate.

The network runs over windows of `clip_window` samples, one every `clip_stride`. It gives a vector
for every 8 samples. The vectors of the middle `clip_stride` samples of each window are kept: those
nearer to its ends know too little of what is before or after. The windows of a video thus give a
vector for every 8 samples from its first to its last; samples beyond its ends repeat the outermost
one. A snippet gets the vector at its centre, linearly interpolated in time.
"""

from typing import NamedTuple

import h5py
import numpy as np

from actionspan.arrays import Float32, Float64, Int64, UInt8
from actionspan.errors import InputError
from actionspan.features import encoders
from actionspan.features.settings import SAMPLES_A_VECTOR, EncoderSettings
from actionspan.features.steps import interpolate
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.runtime import Eager
from actionspan.running.apart import still_working


class Clips(NamedTuple):
    """A video's samples, as the video stage keeps them."""

    frames: encoders.Snippets  # (K, h, w, 3) uint8
    rows: Int64  # (M,) the frame that each sample shows
    rate: float  # samples per second; the first is at 0 s
    times: Float64  # (T,) centres of the snippets in seconds


def read_clips(group: h5py.Group) -> Clips:
    """Return the clips of a video's group of frames.

    Raises:
        InputError: The group has none.
    """
    if "clip" not in group:
        raise InputError(
            f"{group.file.filename}: no frames for clips; run video frames with --clips"
        )
    rate = float(group["clip"].attrs["rate"])
    return Clips(group["clip"], group["clip_row"][:], rate, group["time"][:])


def window_at(start: int, count: int, window: int, stride: int) -> Int64:
    """Return the samples of the window from `start`, 0, `stride`, …, of a video of `count` samples.

    The last window is as short as what is left of the video allows.
    """
    margin, each = (window - stride) // 2, SAMPLES_A_VECTOR
    kept = min(stride, -(-(count - start) // each) * each)
    return np.clip(np.arange(start - margin, start + kept + margin), 0, count - 1)


class ClipEncoder:
    """The network of clips: the samples of a video in, a vector for each snippet out."""

    def __init__(self, settings: EncoderSettings, weights: encoders.Weights = None) -> None:
        encoder = settings.clip_encoder
        self.settings = settings
        weights = settings.clip_weights if weights is None else weights
        network, self.features = encoders.build_network(encoder, weights, 3, settings.source)
        # OpenVINO takes 11 s to compile i3d, and more memory to compute it.
        inputs = Inputs(architecture(encoder), 3, encoders.device_of(settings))
        self.run = Eager(network, inputs, settings.precision)

    def vectors(self, frames: encoders.Snippets, rows: Int64) -> Float32:
        """Return a vector for every 8 samples, (M / 8 rounded up, features)."""
        count, stride, window = len(rows), self.settings.clip_stride, self.settings.clip_window
        windows = [window_at(start, count, window, stride) for start in range(0, count, stride)]
        return np.concatenate([self.window(frames, rows[samples]) for samples in windows])

    def __call__(self, clips: Clips) -> Float32:
        """Encode a video, (T, features)."""
        return at_times(self.vectors(clips.frames, clips.rows), clips.rate, clips.times)

    def window(self, frames: encoders.Snippets, rows: Int64) -> Float32:
        """Return the vectors that are kept of one window, given the frame of each sample."""
        settings = self.settings
        margin = (settings.clip_window - settings.clip_stride) // 2 // SAMPLES_A_VECTOR  # vectors
        still_working()
        first, end = int(rows.min()), int(rows.max()) + 1
        pictures = encoders.frames_to_batch(frames[first:end], settings.clip_size, settings.crop)
        vectors: Float32 = self.run(pictures[rows - first][None])[0]
        return vectors[margin : len(vectors) - margin]


def at_times(vectors: Float32, rate: float, times: Float64) -> Float32:
    """Return vectors, one for every 8 samples, at the centres (T,) of snippets in seconds."""
    middles = np.arange(len(vectors)) * SAMPLES_A_VECTOR + (SAMPLES_A_VECTOR - 1) / 2
    return interpolate(vectors, np.asarray(middles / rate, np.float64), times)


class ClipStream:
    """The clips of a video as they are decoded: no more pictures are held than a window has.

    The encoder sees a window as soon as its last sample is there.
    """

    def __init__(self, encoder: ClipEncoder) -> None:
        self.encoder = encoder
        self._pictures: list[UInt8] = []
        self._first = 0  # the number of the first picture that is held
        self._rows: list[int] = []  # the picture of each sample
        self._start = 0  # of the next window, in samples
        self._found: list[Float32] = []

    def take(self, picture: UInt8, samples: int) -> None:
        """Take the next picture that is kept, and how many samples show it."""
        settings = self.encoder.settings
        self._rows += [self._first + len(self._pictures)] * samples
        self._pictures.append(picture)
        reach = (settings.clip_window + settings.clip_stride) // 2  # of a window from its start
        while len(self._rows) >= self._start + reach:
            self._encode()

    def finish(self, rate: float, times: Float64) -> Float32:
        """Return the vectors (T, features) at the centres of the video's snippets in seconds."""
        while self._start < len(self._rows):
            self._encode()
        return at_times(np.concatenate(self._found), rate, times)

    def _encode(self) -> None:
        window, stride = self.encoder.settings.clip_window, self.encoder.settings.clip_stride
        rows = np.asarray(self._rows, np.int64)
        samples = window_at(self._start, len(rows), window, stride)
        pictures = np.stack(self._pictures)
        self._found.append(self.encoder.window(pictures, rows[samples] - self._first))
        # drop the pictures before the next window
        self._start += stride
        next_sample = max(self._start - (window - stride) // 2, 0)
        if next_sample < len(rows):
            needed = int(rows[next_sample])
            del self._pictures[: needed - self._first]
            self._first = needed
