"""Streams of samples: random ones of a chosen speed, and frames of videos."""

import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float32, Float64
from actionspan_papers.partime.footage import Footage
from actionspan_papers.partime.networks import RANDOM_INPUTS


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
    """Return (T, 1, h, w) frames: video after video, every so many frames.

    They are less the mean frame of all videos, and their variance over all videos is 1. When all
    videos are over they begin again, one frame later.
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
    """Return 1 less the correlation of successive samples, whose variance over all streams is 1.

    0 stands still; 1 is shuffled.
    """
    values: Float64 = stream.double().flatten(1).numpy()
    return float(np.square(np.diff(values, axis=0)).mean() / 2)
