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
import torch

from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.features.encoders import Snippets, build_network, device_of
from actionspan.features.images import frames_to_batch
from actionspan.features.settings import SAMPLES_A_VECTOR, EncoderSettings
from actionspan.features.steps import interpolate
from actionspan.networks.architecture import architecture
from actionspan.networks.inputs import Inputs
from actionspan.running.apart import still_working


class Clips(NamedTuple):
    """A video's samples, as the video stage keeps them."""

    frames: Snippets  # (K, h, w, 3) uint8
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


def window_samples(count: int, window: int, stride: int) -> list[Int64]:
    """Return the samples of each window of a video of `count` samples.

    The last window is as short as what is left of the video allows.
    """
    margin, each = (window - stride) // 2, SAMPLES_A_VECTOR
    windows = []
    for start in range(0, count, stride):
        kept = min(stride, -(-(count - start) // each) * each)
        around = np.arange(start - margin, start + kept + margin)
        windows.append(np.clip(around, 0, count - 1))
    return windows


class ClipEncoder:
    """The network of clips: the samples of a video in, a vector for each snippet out."""

    def __init__(self, settings: EncoderSettings) -> None:
        encoder = settings.clip_encoder
        self.settings = settings
        self.device = device_of(settings)
        network, self.features = build_network(encoder, settings.clip_weights, 3, settings.source)
        self.network = network.to(self.device).to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
        self.inputs = Inputs(architecture(encoder), 3, self.device)

    @torch.inference_mode()
    def vectors(self, frames: Snippets, rows: Int64) -> Float32:
        """Return a vector for every 8 samples, (M / 8 rounded up, features)."""
        window, stride = self.settings.clip_window, self.settings.clip_stride
        margin = (window - stride) // 2 // SAMPLES_A_VECTOR  # in vectors
        found = []
        for samples in window_samples(len(rows), window, stride):
            vectors = self._forward(frames, rows[samples])
            found.append(vectors[margin : len(vectors) - margin])
        return np.concatenate(found)

    def __call__(self, clips: Clips) -> Float32:
        """Encode a video, (T, features)."""
        vectors = self.vectors(clips.frames, clips.rows)
        middles = np.arange(len(vectors)) * SAMPLES_A_VECTOR + (SAMPLES_A_VECTOR - 1) / 2
        return interpolate(vectors, np.asarray(middles / clips.rate, np.float64), clips.times)

    def _forward(self, frames: Snippets, rows: Int64) -> Float32:
        """Return the vectors of one window."""
        settings = self.settings
        still_working()
        first = int(rows.min())
        pictures = frames_to_batch(
            frames[first : int(rows.max()) + 1], settings.clip_size, settings.crop
        )
        clip = self.inputs(torch.from_numpy(pictures[rows - first])[None])
        half = settings.precision != "float32"
        dtype = getattr(torch, settings.precision) if half else None
        with torch.autocast(self.device.type, dtype=dtype, enabled=half):
            (vectors,) = self.network(clip)
        return np.asarray(vectors.float().cpu().numpy(), np.float32)
