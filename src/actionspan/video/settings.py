"""The knobs of the video stage, with units and what is allowed."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from actionspan.settings import option


@dataclass(frozen=True, kw_only=True)
class FrameSettings:
    """What is kept of the decoded frames."""

    snippet_frames: int = option(16, "frames a snippet", unit="frames")
    stack: int = option(1, "L, flows a snippet: L + 1 grey frames are kept")
    short_side: int = option(
        256, "frames with a longer short side are reduced to it", unit="pixels"
    )

    def __post_init__(self) -> None:
        for name, least in (("snippet_frames", 1), ("stack", 1), ("short_side", 32)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} is {value}: at least {least}")


@dataclass(frozen=True, kw_only=True)
class FlowSettings:
    """How optical flow is computed and coded."""

    algorithm: Literal["dis", "farneback", "tvl1", "raft"] = option("dis", "optical flow method")
    preset: Literal["ultrafast", "fast", "medium"] = option("medium", "of dis: care against speed")
    bound: float = option(20.0, "displacement coded as 255 (and its negative as 0)", unit="pixels")
    weights: Path | None = option(None, "of raft: a checkpoint of RAFT-small")
    iterations: int = option(12, "of raft: updates of the flow")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "of raft: cuda where there is one")

    def __post_init__(self) -> None:
        if not 0 < self.bound < math.inf:
            raise ValueError(f"bound is {self.bound}: a finite number of pixels above 0")
        if self.iterations < 1:
            raise ValueError(f"iterations is {self.iterations}: at least 1")
        if self.algorithm == "raft" and self.weights is None:
            raise ValueError("weights is none: algorithm raft needs a checkpoint of RAFT-small")
