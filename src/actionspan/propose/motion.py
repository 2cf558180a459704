"""Proposals without a model: motion grouped by watershed."""

from pathlib import Path

import numpy as np

from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import rescale
from actionspan.proposals.grouping import group_proposals
from actionspan.propose.proposed import Proposed
from actionspan.propose.snippets import video_snippets
from actionspan.video.settings import FlowSettings, FrameSettings


class MotionProposer:
    """Groups the magnitude of optical flow by watershed (TAG), without training."""

    def propose(self, video: Path | str) -> Proposed:
        """Return the proposals of one video file.

        Raises:
            InputError: The file is missing or cannot be decoded.
        """
        settings = RescaleSettings()
        with video_snippets(Path(video), FrameSettings(), FlowSettings()) as (_, flow, duration):
            magnitude = np.asarray(flow["flow_magnitude"])
            times = flow["time"][:]
        motion = rescale(magnitude, times, duration, settings.steps, settings.method)
        segments, scores = group_proposals(motion, duration)
        return Proposed(duration_seconds=duration, segments=segments, scores=scores, motion=motion)
