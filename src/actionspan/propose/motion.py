"""Proposals without a model: motion grouped by watershed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import rescale
from actionspan.proposals.grouping import group_proposals
from actionspan.propose.proposed import Proposed
from actionspan.propose.reading import read_duration
from actionspan.video.batches import snippet_batches
from actionspan.video.decode import has_eight_bits, read_frames
from actionspan.video.settings import FlowSettings, FrameSettings

_BATCH = 16  # snippets


class MotionProposer:
    """Groups the magnitude of optical flow by watershed (TAG), without training."""

    def propose(
        self, video: Path | str, on_progress: Callable[[float, float], None] | None = None
    ) -> Proposed:
        """Return the proposals of one video file.

        Args:
            video: The file.
            on_progress: Is told now and then how much of the video is done, and its length [s].

        Raises:
            InputError: The file is missing or cannot be decoded.
        """
        settings = RescaleSettings()
        duration = read_duration(Path(video))
        # decord would decode far ahead of the flow and fill the memory
        frames = read_frames(Path(video), steady=has_eight_bits(Path(video)))
        batches = []
        for batch in snippet_batches(frames, FrameSettings(), FlowSettings(), _BATCH):
            batches.append((batch.flow_magnitude, batch.time))
            if on_progress:
                on_progress(float(batch.time[-1]), duration)
        magnitude, times = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        motion = rescale(magnitude, times, duration, settings.steps, settings.method, motion=True)
        segments, scores = group_proposals(motion, duration)
        return Proposed(duration_seconds=duration, segments=segments, scores=scores, motion=motion)
