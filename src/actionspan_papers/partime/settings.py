"""The settings of paper 002's experiments; each section is given to the steps that use it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class PartimeSettings(Checked):
    """What holds for all experiments that learn."""

    seeds: int = option(5, "trainings of each kind", least=1, most=1_000)
    stages: tuple[int, ...] = option(
        (2, 4), "numbers of stages, in addition to one", least=2, most=4, fewest=1, rising=True
    )
    confidence: float = option(0.95, "level of the confidence intervals", above=0, below=1)


@dataclass(frozen=True, kw_only=True)
class StreamSettings(Checked):
    """The consecutive frames that are kept for the experiments."""

    most_videos: int = option(16, "videos, the first by name", least=2)
    most_seconds: float = option(60.0, "kept of each video", above=0, unit="seconds")
    height: int = option(48, "height of frames, a multiple of 8", least=32, unit="pixels")
    width: int = option(64, "width of frames, a multiple of 8", least=32, unit="pixels")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("height", "width"):
            if getattr(self, name) % 8:
                raise ValueError(f"{name} {getattr(self, name)}: must be a multiple of 8")


@dataclass(frozen=True, kw_only=True)
class SpeedSettings(Checked):
    """The networks for measuring speed, and for how long."""

    layers: int = option(20, "convolutions of the plain network and of the pooled one", least=8)
    maps: int = option(16, "maps of each of these convolutions", least=1)
    sides: tuple[int, ...] = option(
        (32, 64, 128), "R, sides of their images", least=16, fewest=1, rising=True, unit="pixels"
    )
    outputs: tuple[int, ...] = option((1, 10, 100), "F, output maps or classes", least=1, fewest=1)
    encoder_side: int = option(
        128, "side of the images of ResNet-18 and EfficientNet-Lite0", least=64, unit="pixels"
    )
    depths: tuple[int, ...] = option(
        (2, 4, 8), "D, numbers of stages to balance and to emulate", least=2, most=8, fewest=1
    )
    pairs: int = option(5, "interleaved pairs of a loop and a pipeline", least=2)
    measured_seconds: float = option(
        0.3, "of the plain loop in each of them, about", above=0, unit="seconds"
    )


@dataclass(frozen=True, kw_only=True)
class GradientSettings(Checked):
    """The streams on which gradients are compared with the true ones."""

    correlations: tuple[float, ...] = option(
        (0.0, 0.5, 0.9, 0.99, 0.999),
        "of successive samples of random streams",
        least=0,
        below=1,
        fewest=1,
        rising=True,
    )
    subsampling: tuple[int, ...] = option(
        (1, 2, 4, 8, 16, 32, 64),
        "every k-th frame of the streams of frames, for each k",
        least=1,
        fewest=1,
        rising=True,
    )
    samples: int = option(300, "of each stream", least=40)
    learning_rate: float = option(0.05, "step size of SGD on random streams", above=0)
    frames_learning_rate: float = option(0.01, "step size of SGD on frames", above=0)
    good_cosine: float = option(
        0.9, "cosine with the true gradient from which one is good enough", above=0, below=1
    )


def _tried_rates() -> Any:
    help = "step sizes of Adam to try for every number of stages"
    return option((0.0003, 0.001, 0.003), help, above=0, fewest=1, rising=True)


@dataclass(frozen=True, kw_only=True)
class ClassificationSettings(Checked):
    """Continual classification, as in figure 3."""

    samples: int = option(600, "snippets of a stream", least=50)
    windows: tuple[int, ...] = option(
        (1, 16, 64), "sizes of the sliding window", least=1, fewest=1, rising=True
    )
    learning_rates: tuple[float, ...] = _tried_rates()
    hidden: int = option(64, "units of each of the three hidden layers", least=2)


@dataclass(frozen=True, kw_only=True)
class FlowLearningSettings(Checked):
    """Continual optical flow, as in figures 4 and 5."""

    pairs: int = option(1200, "pairs of frames that are scored", least=100)
    apart: int = option(4, "from the first frame of a pair to the second", least=1, unit="frames")
    choosing_pairs: int = option(400, "pairs of other videos, on which rates are chosen", least=50)
    learning_rates: tuple[float, ...] = _tried_rates()
    maps: int = option(8, "maps of the widest image inside the network", least=2)
    smoothness: float = option(0.005, "weight of the regularity of the flow in the loss", least=0)
    window_seconds: float = option(
        4.0, "window over which the loss is averaged (paper: 60)", above=0, unit="seconds"
    )


SECTIONS: dict[str, tuple[type[Any], str]] = {
    "": (PartimeSettings, "paper 002's experiments: snakemake partime_figures"),
    ".frames": (StreamSettings, "the frames of streams"),
    ".speed": (SpeedSettings, "tables I and II, figures 1 and 2"),
    ".gradients": (GradientSettings, "gradients over the speed of a stream"),
    ".classification": (ClassificationSettings, "figure 3"),
    ".flow": (FlowLearningSettings, "figures 4 and 5"),
}
"""The settings by the section of config.yaml under papers.partime, and their comments."""


_Mode = Literal["paper", "inputs", "stash"]
MODES: tuple[_Mode, ...] = get_args(_Mode)
LAST_ONLY = "last stage only"
"""Only the last stage learns, as in the paper's public code with CUDA graph."""


@dataclass(frozen=True)
class Variant:
    """A number of stages and a gradient mode, or `LAST_ONLY`; one stage is plain training."""

    stages: int
    mode: str

    @property
    def gradients(self) -> _Mode:
        """The mode that the pipeline has."""
        return next((mode for mode in MODES if mode == self.mode), "paper")

    @property
    def name(self) -> str:
        """How reports call it."""
        return "sequential" if self.stages == 1 else f"D = {self.stages}, {self.mode}"

    @property
    def cells(self) -> dict[str, str | int]:
        """The cells that name it in tables."""
        return {"stages": self.stages, "gradients": self.mode}


SEQUENTIAL = Variant(1, "paper")
"""Plain training."""


def variants(stages: Sequence[int], *, last_only: bool) -> list[Variant]:
    """Return plain training, and every mode at every number of stages."""
    modes = [*MODES, LAST_ONLY] if last_only else list(MODES)
    return [SEQUENTIAL, *(Variant(count, mode) for count in stages for mode in modes)]


def ways(stages: Sequence[int]) -> list[Variant]:
    """Return the ways that are compared: `stash` is left to the experiment on gradients."""
    return [way for way in variants(stages, last_only=False) if way.mode != "stash"]


WORKS = {"inference": False, "learning": True}
"""The work of the networks for measuring speed, and whether they learn."""
EXECUTORS = ("thread", "process")
MEASURED, EMULATED = "measured", "emulated"
