"""A video's frames to batches of snippets with their flow, as fast as they are taken."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from actionspan.arrays import Float32, Float64, UInt8
from actionspan.video.decode import Frame
from actionspan.video.optical_flow import compute_flow
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import cut_snippets, frame_differences


class Batch(NamedTuple):
    """What `video frames` and `video flow` would write of a few snippets."""

    pictures: UInt8  # (B, H, W, 3) centre frames
    flow: UInt8  # (B, 2L, H, W) coded
    time: Float64  # (B,) of the centre frames in seconds
    frame_difference: Float32  # (B,) 0 … 1
    flow_magnitude: Float32  # (B,) pixels


def snippet_batches(
    frames: Iterable[Frame], settings: FrameSettings, flow: FlowSettings, size: int
) -> Iterator[Batch]:
    """Yield the snippets of a sequence of frames, `size` at a time and fewer at its end.

    Raises:
        InputError: The flow cannot be computed, or the frames are too small for it.
    """
    remaining = cut_snippets(frames, settings)
    while snippets := list(islice(remaining, size)):
        planes, magnitude = compute_flow(np.stack([snippet.gray for snippet in snippets]), flow)
        yield Batch(
            pictures=np.stack([snippet.rgb for snippet in snippets]),
            flow=planes,
            time=np.array([snippet.seconds for snippet in snippets]),
            frame_difference=np.array([frame_differences(s.gray) for s in snippets], np.float32),
            flow_magnitude=magnitude,
        )
