"""Settings of all that features of a video depend on, and their flags."""

import argparse
from dataclasses import dataclass, field

from actionspan.features.settings import EncoderSettings
from actionspan.settings import add_settings, from_arguments
from actionspan.video.settings import FlowSettings, FrameSettings


@dataclass(frozen=True, kw_only=True)
class VideoSettings:
    """All that features of a video depend on."""

    frames: FrameSettings = field(default_factory=FrameSettings)
    flow: FlowSettings = field(default_factory=FlowSettings)
    encoders: EncoderSettings = field(default_factory=EncoderSettings)


def add_video_settings(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `VideoSettings`."""
    add_settings(parser, FrameSettings)
    add_settings(parser, FlowSettings, without=("device",))
    parser.add_argument(
        "--flow-device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="where RAFT computes the flow (default: auto)",
    )
    add_settings(parser, EncoderSettings)


def video_settings(arguments: argparse.Namespace) -> VideoSettings:
    """Return what these flags say."""
    return VideoSettings(
        frames=from_arguments(FrameSettings, arguments),
        flow=from_arguments(FlowSettings, arguments, device=arguments.flow_device),
        encoders=from_arguments(EncoderSettings, arguments),
    )
