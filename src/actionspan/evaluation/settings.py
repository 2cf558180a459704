"""The settings of the evaluation stage; imports stay light, as the Snakefile reads them."""

from dataclasses import dataclass
from typing import Literal

from actionspan.settings import Checked, option

BASELINES = ("random", "tiles", "sliding", "difference", "cuts", "tag")


@dataclass(frozen=True, kw_only=True)
class BaselineSettings(Checked):
    """How the baselines make proposals, and how many."""

    proposals: int = option(100, "most proposals of a video", least=1, most=100_000)
    seed: int = option(1, "seed of the random proposals", least=0)
    tiles: int = option(5, "equal parts of a video", least=1, most=100)
    overlap: float = option(
        0.6, "share that neighbouring sliding windows have in common", least=0, most=0.95
    )
    shortest_window: float = option(
        0.02, "shortest sliding window, as a share of the video", least=0.001, most=1
    )
    window_prior: Literal["training", "none"] = option(
        "training", "order of the windows: by the lengths of training instances, or none"
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(Checked):
    """How the bootstrap intervals of AUC and recall are made."""

    resamples: int = option(1000, "bootstrap resamples of the videos", least=1, most=1_000_000)
    confidence: float = option(0.95, "share of the resamples inside the interval", above=0, below=1)
    seed: int = option(1, "seed of the bootstrap", least=0)
