"""Pairs of frames, the cues of motion in them, and the loss of a flow that nobody labelled."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from actionspan.arrays import Float64
from actionspan_papers.partime.footage import Footage


class Pairs(NamedTuple):
    """P pairs of frames as a stream."""

    frames: Tensor
    """(P, 2, h, w) of 0 … 1."""
    cues: Tensor
    """(P, 5, h, w): the flow along the gradient, the change, and both gradients."""
    seconds: Float64
    """(P,) when each pair comes."""


def pairs_of(footage: Footage, places: Iterable[int], count: int, apart: int) -> Pairs:
    """Return pairs of frames of videos in their order, none across the end of a video."""
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
    """Return (P, 5, h, w) what a network can see of the motion in (P, 2, h, w) pairs.

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
    rows, columns = torch.meshgrid(
        torch.arange(height, dtype=flow.dtype),
        torch.arange(width, dtype=flow.dtype),
        indexing="ij",
    )
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
