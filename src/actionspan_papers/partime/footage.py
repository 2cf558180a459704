"""Consecutive small grey frames of videos: how they are kept, and read again."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from actionspan.annotations.tables import Video
from actionspan.arrays import Float32, Float64, UInt8
from actionspan.storage.writing import create_h5, digest, open_h5
from actionspan.video.decode import read_frames
from actionspan_papers.partime.networks import RANDOM_INPUTS
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
    frames = []
    for frame in islice(read_frames(video.path), most):
        grey = cv2.cvtColor(frame.picture(), cv2.COLOR_RGB2GRAY)
        frames.append(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))
    return np.stack(frames).astype(np.uint8)


class Footage:
    """The frames of the videos of a file that `write_footage` wrote.

    `videos` are (T, h, w) grey frames of 0 … 1, `rates` their frames a second; `mean` is the (h, w)
    mean frame of all and `spread` the root mean square of the frames without it.
    """

    def __init__(self, path: Path) -> None:
        with open_h5(path) as file:
            codes = [file[name]["gray"][:] for name in file]
            self.rates = [float(file[name].attrs["fps"]) for name in file]
        self.videos: list[Float32] = [np.divide(each, 255, dtype=np.float32) for each in codes]
        means = np.stack([video.mean(axis=0) for video in self.videos])
        self.mean: Float32 = means.mean(axis=0)
        left = [np.square(video - self.mean).mean() for video in self.videos]
        self.spread = max(float(np.sqrt(np.mean(left))), 1e-6)


def random_stream(correlation: float, samples: int, seed: int) -> Tensor:
    """Return (T, 16) samples of an AR(1) process of mean 0 and variance 1."""
    generator = np.random.default_rng([seed, 1])
    noise = generator.normal(size=(samples, RANDOM_INPUTS))
    values = np.empty_like(noise)
    values[0] = noise[0]
    for step in range(1, samples):
        values[step] = correlation * values[step - 1] + (1 - correlation**2) ** 0.5 * noise[step]
    return torch.from_numpy(values.astype(np.float32))


def frame_stream(footage: Footage, every: int, samples: int, seed: int) -> Tensor:
    """Return (T, 1, h, w) frames: video after video, of each every `every`-th frame.

    The mean frame of all videos is subtracted, and their variance over all videos is 1. After the
    last video they begin again, one frame later.
    """
    order = np.random.default_rng([seed, 2]).permutation(len(footage.videos))
    taken: list[Float32] = []
    count, shift = 0, 0
    while count < samples:
        for index in order:
            video = footage.videos[index]
            taken.append(video[shift % min(every, len(video)) :: every])
            count += len(taken[-1])
        shift += 1
    frames = (np.concatenate(taken)[:samples] - footage.mean) / footage.spread
    return torch.from_numpy(frames[:, None].astype(np.float32))


def speed(stream: Tensor) -> float:
    """Return 1 less the correlation of successive samples, of variance 1 over all streams.

    0 stands still; 1 is shuffled.
    """
    values: Float64 = stream.double().flatten(1).numpy()
    return float(np.square(np.diff(values, axis=0)).mean() / 2)


class Pairs(NamedTuple):
    """P pairs of frames as a stream."""

    frames: Tensor
    """(P, 2, h, w) of 0 … 1."""
    cues: Tensor
    """(P, 5, h, w): the flow along the gradient, the change, and both gradients."""
    seconds: Float64
    """(P,) when each pair comes."""


def pairs_of(footage: Footage, places: Iterable[int], count: int, apart: int) -> Pairs:
    """Return pairs of frames `apart` frames apart, video after video, none across an end."""
    frames, steps, taken = [], [], 0
    for place in places:
        video = footage.videos[place]
        if len(video) <= apart or taken >= count:
            continue
        frames.append(np.stack([video[:-apart], video[apart:]], axis=1))
        steps.append(np.full(len(video) - apart, 1 / footage.rates[place]))
        taken += len(video) - apart
    every = torch.from_numpy(np.concatenate(frames)[:count])
    return Pairs(every, motion_cues(every), np.cumsum(np.concatenate(steps))[:count])


def motion_cues(pairs: Tensor) -> Tensor:
    """Return the (P, 5, h, w) cues of motion that a network gets of (P, 2, h, w) pairs.

    A network that sees two frames alone needs many thousands of pairs before it leaves the flow 0;
    the flow along the gradient, −I_t ∇I / |∇I|², is where classical methods begin.
    """
    mean = functional.pad(pairs.mean(dim=1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    smooth = functional.avg_pool2d(mean, 3, 1)
    wide = functional.pad(smooth, (1, 1, 0, 0), mode="replicate")
    tall = functional.pad(smooth, (0, 0, 1, 1), mode="replicate")
    across = (wide[..., 2:] - wide[..., :-2]) / 2
    down = (tall[..., 2:, :] - tall[..., :-2, :]) / 2
    change = pairs[:, 1:] - pairs[:, :1]
    steep = across**2 + down**2 + 1e-3
    cues = [-change * across / steep, -change * down / steep, 10 * change, 10 * across, 10 * down]
    return torch.cat(cues, dim=1).clamp(-4, 4)


def photometric(flow: Tensor, pair: Tensor) -> Tensor:
    """Return the mean difference of the first frame and the second, moved back by the flow."""
    height, width = pair.shape[-2:]
    down, across = (torch.arange(size, dtype=flow.dtype) for size in (height, width))
    rows, columns = torch.meshgrid(down, across, indexing="ij")
    x = 2 * (columns + flow[:, 0]) / (width - 1) - 1
    y = 2 * (rows + flow[:, 1]) / (height - 1) - 1
    moved = functional.grid_sample(
        pair[:, 1:], torch.stack([x, y], dim=-1), padding_mode="border", align_corners=True
    )
    # Charbonnier's: as the absolute value, with a gradient at 0
    return torch.sqrt((moved - pair[:, :1]) ** 2 + 1e-6).mean()


def roughness(flow: Tensor) -> Tensor:
    """Return the mean change of the flow from pixel to pixel."""
    across = (flow[..., 1:] - flow[..., :-1]).abs().mean()
    return across + (flow[..., 1:, :] - flow[..., :-1, :]).abs().mean()
