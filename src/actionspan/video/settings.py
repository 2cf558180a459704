"""Settings of the video stage: the frames kept of a video, and the measure of its motion."""

from dataclasses import dataclass
from typing import Literal

from actionspan.settings import Checked, option

Algorithm = Literal["dis", "farneback", "tvl1"]
Decoder = Literal["pyav", "decord"]
JPEG_BLOCK = 8  # pixels a side
JPEG_LONGEST = 65500  # pixels: libjpeg's limit
CUTS = "cuts"
"""The name of where a video is cut (`CutFinder.found`), in files and among its facts."""
BOUTS = "bouts"
"""The name of when something moves (`BoutFinder.found`), in the same places."""


@dataclass(frozen=True, kw_only=True)
class FrameSettings(Checked):
    """The frames kept of each snippet: its centre frame and the grey frames flow needs."""

    snippet_frames: int = option(
        8,
        "frames in a snippet (papers: 16); each snippet gives one feature vector a stream",
        least=1,
        most=10_000,
    )
    stack: int = option(
        1,
        "L, flow fields of a snippet; L + 1 grey frames round its centre are kept",
        least=1,
        most=127,
    )
    short_side: int = option(
        256,
        "larger frames are reduced to this short side, smaller ones are kept",
        unit="pixels",
        least=32,
        most=8192,
    )
    mover_side: int = option(
        224,
        "side of the square around what moves that is kept of each snippet too; 0: none",
        unit="pixels",
        least=0,
        most=4096,
    )
    still: bool = option(
        True, "snippets in which nothing changes keep the features of the last (docs/method.md)"
    )
    clips: bool = option(False, "keep consecutive frames for a network of clips too")
    clip_rate: float = option(
        25.0,
        "rate of these frames, whatever the video's; i3d was trained at 25",
        unit="frames per second",
        least=0.01,
        most=1000,
    )
    clip_side: int = option(
        128,
        "short side they are reduced to, smaller ones are kept",
        unit="pixels",
        least=32,
        most=1024,
    )


@dataclass(frozen=True, kw_only=True)
class DecoderSettings(Checked):
    """Which library decodes."""

    decoder: Decoder = option(
        "pyav",
        "what decodes the frames that are stored; decord, of the extra `decord`, gives the same "
        "frames (10-bit ones differ by rounding)",
    )


@dataclass(frozen=True, kw_only=True)
class CopySettings(Checked):
    """How large a copy for browsers is."""

    short_side: int = option(
        480, "larger frames are reduced to this short side", unit="pixels", least=64
    )
    quality: int = option(
        28, "x264's constant rate factor: lower is better and larger", least=0, most=51
    )


@dataclass(frozen=True, kw_only=True)
class FlowSettings(Checked):
    """How the flow between two grey frames is estimated and coded in 8 bits."""

    algorithm: Algorithm = option("dis", "optical flow algorithm")
    preset: Literal["ultrafast", "fast", "medium"] = option(
        "medium", "speed against quality (dis only)"
    )
    bound: float = option(
        20.0,
        "displacements of this size and more get the outermost codes, 1 and 255",
        unit="pixels",
        least=0.01,
        most=10_000,
    )
