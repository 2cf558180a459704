"""The clip stream: a network of video that sees consecutive frames at its own rate.

The network runs over windows of samples, one every `clip_stride`. I3D gives a vector for every 8
samples. The vectors of the middle `clip_stride` samples of each window are kept: those nearer to
its ends know too little of the frames before or after. Networks of transformers give one vector a
window, for these samples. The windows of a video thus give evenly spaced vectors from its first
sample to its last; samples beyond its ends repeat the outermost one. A snippet gets the vector at
its centre, linearly interpolated in time.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import h5py
import numpy as np

from actionspan.arrays import Float32, Float64, Int64, UInt8
from actionspan.errors import InputError
from actionspan.features import encoders
from actionspan.features.hub_encoders import hub_network
from actionspan.features.settings import SAMPLES_A_VECTOR, EncoderSettings
from actionspan.features.steps import interpolate
from actionspan.jobs.apart import still_working
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.names import is_hub
from actionspan.networks.runtime import Eager, ToPixels


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


class Windows(NamedTuple):
    """The windows of a video, in samples."""

    length: int
    stride: int  # from one to the next; a window's vectors are of its middle stride
    each: int  # samples for which there is a vector

    @property
    def before(self) -> int:
        """The samples of a window before its middle stride."""
        return (self.length - self.stride) // 2

    def at(self, start: int, count: int) -> Int64:
        """Return the samples of the window from `start`, 0, `stride`, …, of a video of `count`.

        The last window may be shorter: it ends with the video.
        """
        kept = min(self.stride, -(-(count - start) // self.each) * self.each)
        first = start - self.before
        return np.clip(np.arange(first, first + self.length - self.stride + kept), 0, count - 1)


class ClipEncoder:
    """The network of clips: the samples of a video in, a vector for each snippet out."""

    def __init__(self, settings: EncoderSettings, weights: encoders.Weights = None) -> None:
        encoder = settings.clip_encoder
        inputs: ToPixels
        self.pictures: Callable[[UInt8], UInt8] = np.asarray
        if is_hub(encoder):
            found = hub_network(settings, "clip")
            network, self.features, inputs = found.network, found.features, found.inputs
            inputs.device = encoders.device_of(settings)
            stride = min(settings.clip_stride, found.frames)
            self.windows = Windows(found.frames, stride, each=stride)
        else:
            weights = settings.clip_weights if weights is None else weights
            network, self.features = encoders.build_network(encoder, weights, 3, settings.source)
            inputs = Inputs(architecture(encoder), 3, encoders.device_of(settings))
            size, crop = settings.clip_size, settings.crop
            self.pictures = partial(encoders.frames_to_batch, size=size, crop=crop)
            length, stride = settings.clip_window, settings.clip_stride
            self.windows = Windows(length, stride, SAMPLES_A_VECTOR)
        # OpenVINO takes 11 s to compile i3d, and more memory to compute it.
        self.run = Eager(network, inputs, settings.precision)

    def vectors(self, frames: encoders.Snippets, rows: Int64) -> Float32:
        """Return a vector for each `windows.each` of M samples, (M / each rounded up, F)."""
        starts = range(0, len(rows), self.windows.stride)
        samples = (self.windows.at(start, len(rows)) for start in starts)
        return np.concatenate([self.window(frames, rows[window]) for window in samples])

    def __call__(self, clips: Clips) -> Float32:
        """Encode a video, (T, features)."""
        return self.at_times(self.vectors(clips.frames, clips.rows), clips.rate, clips.times)

    def window(self, frames: encoders.Snippets, rows: Int64) -> Float32:
        """Return the vectors that are kept of one window, given the frame of each sample."""
        still_working()
        first, end = int(rows.min()), int(rows.max()) + 1
        clip = self.pictures(frames[first:end])[rows - first]
        vectors: Float32 = self.run(clip[None])
        if vectors.ndim == 2:
            return vectors
        before = self.windows.before // self.windows.each
        return vectors[0, before : vectors.shape[1] - before]

    def at_times(self, vectors: Float32, rate: float, times: Float64) -> Float32:
        """Return the vectors of a video at the centres (T,) of its snippets in seconds."""
        middles = np.arange(len(vectors)) * self.windows.each + (self.windows.each - 1) / 2
        return interpolate(vectors, np.asarray(middles / rate, np.float64), times)


class ClipStream:
    """The clips of a video as they are decoded: no more frames are held than a window has.

    The encoder sees a window as soon as its last sample is there.
    """

    def __init__(self, encoder: ClipEncoder) -> None:
        self.encoder = encoder
        self._pictures: list[UInt8] = []
        self._first = 0  # the number of the first frame that is held
        self._rows: list[int] = []  # the frame of each sample
        self._start = 0  # of the next window, in samples
        self._found: list[Float32] = []

    def take(self, picture: UInt8, samples: int) -> None:
        """Take the next frame that is kept, and how many samples show it."""
        windows = self.encoder.windows
        self._rows += [self._first + len(self._pictures)] * samples
        self._pictures.append(picture)
        reach = windows.length - windows.before  # of a window from its start
        while len(self._rows) >= self._start + reach:
            self._encode()

    def finish(self, rate: float, times: Float64) -> Float32:
        """Return the vectors (T, features) at the centres of the video's snippets in seconds."""
        while self._start < len(self._rows):
            self._encode()
        return self.encoder.at_times(np.concatenate(self._found), rate, times)

    def _encode(self) -> None:
        windows, rows = self.encoder.windows, np.asarray(self._rows, np.int64)
        samples = windows.at(self._start, len(rows))
        pictures = np.stack(self._pictures)
        self._found.append(self.encoder.window(pictures, rows[samples] - self._first))
        # drop the frames before the next window
        self._start += windows.stride
        next_sample = max(self._start - windows.before, 0)
        if next_sample < len(rows):
            needed = int(rows[next_sample])
            del self._pictures[: needed - self._first]
            self._first = needed
