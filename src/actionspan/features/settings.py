"""Settings of the features stage: encoders, external files and rescaling."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from actionspan.networks.names import ImageNetwork
from actionspan.settings import option

Precision = Literal["float32", "bfloat16", "float16"]
Grid = Literal["video", "windows"]


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How one feature vector a stream is computed for each snippet."""

    source: Literal["pooled", "scores"] = option(
        "pooled",
        "globally pooled features, or class scores (before softmax) of trained classifiers",
    )
    rgb_encoder: Literal[ImageNetwork, "i3d"] = option(
        "efficientnet_lite0", "network that sees the RGB frames"
    )
    rgb_weights: Path | None = option(
        None,
        "its checkpoint (.pt, .pth, .safetensors) or a name of torchvision's such as "
        "IMAGENET1K_V1; none: the weights that come as a package (efficientnet_lite0, i3d)",
    )
    flow_encoder: Literal[ImageNetwork, "flow_histogram"] = option(
        "efficientnet_lite0", "network that sees the flow planes, or their histogram"
    )
    flow_weights: Path | None = option(
        None,
        "its checkpoint, of RGB (the first convolution is widened) or of flow; none: as the RGB "
        "stream's where both encoders are the same, else the package's",
    )
    flow_histogram: bool = option(False, "append the flow histogram to the flow network's features")
    flow_gain: float = option(1.0, "factor on the flow before the flow network sees it")
    crop: Literal["squash", "centre"] = option(
        "squash", "resize the whole frame to the square, or its short side and cut the centre"
    )
    input_size: int = option(224, "side of the square a network sees", unit="pixels")
    window: int = option(16, "snippets whose centre frames i3d sees together", unit="snippets")
    batch_size: int = option(16, "snippets of one video in a batch", unit="snippets")
    precision: Precision = option("float32", "arithmetic of the networks")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "auto: cuda where there is one")

    def __post_init__(self) -> None:
        if self.input_size < 32:
            raise ValueError(f"input_size is {self.input_size}: at least 32 pixels")
        if self.rgb_encoder == "i3d" and self.input_size < 193:
            raise ValueError(f"input_size is {self.input_size}: i3d needs at least 193 pixels")
        if self.window < 9:
            raise ValueError(f"window is {self.window}: at least 9 snippets")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}: at least 1 snippet")
        if not 0 < self.flow_gain < float("inf"):
            raise ValueError(f"flow_gain is {self.flow_gain}: a finite number above 0")
        if self.flow_histogram and self.flow_encoder == "flow_histogram":
            raise ValueError("flow_histogram is appended to a network's features: not to itself")
        if self.source == "scores":
            self._check_scores()

    def described(self, flow_algorithm: str) -> str:
        """Return what the features are, for captions."""
        streams = []
        for encoder, weights, source in (
            (self.rgb_encoder, self.rgb_weights, "RGB"),
            (self.flow_encoder, self.flow_weights, f"{flow_algorithm} flow".strip()),
        ):
            named = f" with weights {weights.name}" if weights else ""
            streams.append(f"{encoder}{named} on {source}")
        if self.flow_histogram:
            streams.append("a histogram of flow")
        kind = "class scores" if self.source == "scores" else "pooled features"
        return f"{kind} of {', '.join(streams)}"

    def _check_scores(self) -> None:
        if self.flow_encoder == "flow_histogram" or self.flow_histogram:
            raise ValueError("source is scores: a flow histogram has none; give pooled")
        for stream, weights in (("rgb", self.rgb_weights), ("flow", self.flow_weights)):
            embedded = stream == "rgb" and self.rgb_encoder == "i3d"
            if weights is None and not embedded:
                raise ValueError(
                    f"source is scores: {stream}_weights must name the checkpoint of a trained "
                    f"classifier; without one give source pooled"
                )


@dataclass(frozen=True, kw_only=True)
class ExternalSettings:
    """Where the rows of feature files people already have lie in the video."""

    stride: float = option(
        0.0, "distance of two rows; 0: the rows divide the video evenly", unit="frames"
    )
    offset: float = option(0.0, "centre of the first row (with a stride)", unit="frames")
    layout: Literal["time_first", "feature_first"] = option(
        "time_first", "axis order of the files: (T, C) or (C, T)"
    )

    def __post_init__(self) -> None:
        if not 0 <= self.stride < float("inf"):
            raise ValueError(f"stride is {self.stride}: 0 or more frames")
        if not 0 <= self.offset < float("inf"):
            raise ValueError(f"offset is {self.offset}: 0 or more frames")


@dataclass(frozen=True, kw_only=True)
class RescaleSettings:
    """How features of snippets become sequences of a fixed number of standardised steps."""

    grid: Grid = option(
        "video",
        "a sequence is a whole video rescaled, or a window of the video's snippets as they are "
        "(THUMOS14: short instances in long videos)",
    )
    steps: int = option(100, "length of a sequence: of every video, or of a window", unit="steps")
    stride: int = option(50, "distance of two windows (grid windows)", unit="steps")
    rest: int = option(
        0, "steps at the end of a video that may be in no window (grid windows)", unit="steps"
    )
    method: Literal["mean", "bins", "linear"] = option(
        "mean",
        "a step is the mean over its length, of 3 interpolated points (BSN's), or the point at its "
        "centre (grid video)",
    )
    components: int = option(
        128, "principal components kept of each stream; 0: all features as they are"
    )
    standardise: Literal["none", "stream", "dimension"] = option(
        "stream",
        "subtract the training mean and divide by one scale a stream or by one a dimension "
        "(with components this whitens)",
    )

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}: at least 1")
        if self.components < 0:
            raise ValueError(f"components is {self.components}: 0 or more")
        if self.grid not in get_args(Grid):
            raise ValueError(f"grid is {self.grid!r}: one of {', '.join(get_args(Grid))}")
        if not 1 <= self.stride <= self.steps and self.grid == "windows":
            raise ValueError(f"stride is {self.stride}: from 1 to steps, {self.steps}")
        if self.rest < 0:
            raise ValueError(f"rest is {self.rest}: 0 or more")
