"""Settings of the clips that classifiers are trained on."""

from dataclasses import dataclass

from actionspan.settings import Checked, option
from actionspan.video.settings import JPEG_BLOCK, JPEG_LONGEST


@dataclass(frozen=True, kw_only=True)
class ClipSettings(Checked):
    """What is kept of a clip, and which clips untrimmed videos and folders give."""

    stack: int = option(
        10,
        "L, flow fields at a position of a trimmed clip, and in all videos where features are "
        "scores; otherwise segments of untrimmed videos have the L of the video stage",
        least=1,
    )
    snippet_frames: int = option(
        8, "distance between the stored positions of a trimmed clip", unit="frames", least=1
    )
    height: int = option(
        256, "height of stored frames and flow, a multiple of 8", unit="pixels", least=32
    )
    width: int = option(
        340, "their width, at least the height", unit="pixels", least=32, most=JPEG_LONGEST
    )
    jpeg_quality: int = option(90, "JPEG quality of stored frames and flow", least=1, most=100)
    background: bool = option(
        True, "stretches of videos between instances are clips of the class background"
    )
    background_margin: float = option(
        0.5, "distance of background from the nearest instance", unit="seconds", least=0
    )
    background_ratio: float = option(
        1.0,
        "most background clips of a video for each instance; inf (YAML: .inf): all",
        above=0,
        also=float("inf"),
    )
    validation_fraction: float = option(
        0.25,
        "share of each class's clips, or of the training videos, held out for validation where no "
        "split or subset folder says which",
        least=0,
        below=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height % JPEG_BLOCK:
            # the planes of a position are one picture: no block of it may hold two of them
            raise ValueError(f"height {self.height}: must be a multiple of {JPEG_BLOCK}")
        if self.height > self.width:
            raise ValueError(f"width {self.width}: at least the height, {self.height}")
        if 2 * self.stack * self.height > JPEG_LONGEST:
            most = JPEG_LONGEST // (2 * self.height)
            raise ValueError(f"stack {self.stack}: at most {most} planes of such a height fit")
