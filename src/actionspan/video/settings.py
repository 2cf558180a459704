"""Settings of the video stage: what is kept of a video, and how its motion is measured."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from actionspan.settings import option

Algorithm = Literal["dis", "farneback", "tvl1", "raft"]


@dataclass(frozen=True, kw_only=True)
class FrameSettings:
    """What is kept of each snippet: its centre frame and the grey frames flow needs."""

    snippet_frames: int = option(8, "frames a snippet spans (papers: 16)", unit="frames")
    stack: int = option(1, "L, flows a snippet: L + 1 grey frames round its centre are kept")
    short_side: int = option(
        256, "larger frames are reduced to this short side, smaller ones kept", unit="pixels"
    )

    def __post_init__(self) -> None:
        for name, least in (("snippet_frames", 1), ("stack", 1), ("short_side", 32)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} is {value}: at least {least}")


@dataclass(frozen=True, kw_only=True)
class FlowSettings:
    """How the flow between two grey frames is estimated and coded in 8 bits."""

    algorithm: Algorithm = option("dis", "optical flow algorithm; raft needs weights")
    preset: Literal["ultrafast", "fast", "medium"] = option(
        "medium", "of dis: speed against quality"
    )
    bound: float = option(
        20.0, "displacements of this size and more get the outermost codes", unit="pixels"
    )
    weights: Path | None = option(None, "of raft: a checkpoint of RAFT-small")
    iterations: int = option(12, "of raft: updates of the flow field")
    device: Literal["auto", "cpu", "cuda"] = option(
        "auto", "of raft: auto is cuda where there is one"
    )

    def __post_init__(self) -> None:
        if not 0 < self.bound < math.inf:
            raise ValueError(f"bound is {self.bound}: a finite number of pixels above 0")
        if self.iterations < 1:
            raise ValueError(f"iterations is {self.iterations}: at least 1")
        if self.algorithm == "raft" and self.weights is None:
            raise ValueError("weights is none: algorithm raft needs a checkpoint of RAFT-small")
