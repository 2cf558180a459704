"""Settings of the snippets that encoders are tuned on."""

from dataclasses import dataclass

from actionspan.settings import Checked, option
from actionspan.video.settings import JPEG_BLOCK, JPEG_LONGEST


@dataclass(frozen=True, kw_only=True)
class StoreSettings(Checked):
    """How pictures of each video's snippets are stored: about 3 MB for 100 of them.

    By default they are as large as the frames of the video stage, so that a network sees in
    training what it sees where features are made, and crops of 0.8 have pixels enough.
    """

    height: int = option(
        256,
        "height of stored frames and flow, a multiple of 8; at least 1.25 times the input size",
        unit="pixels",
        least=32,
        most=JPEG_LONGEST,
    )
    width: int = option(340, "their width", unit="pixels", least=32, most=JPEG_LONGEST)
    jpeg_quality: int = option(90, "JPEG quality of stored frames and flow", least=1, most=100)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height % JPEG_BLOCK:
            # the planes of a snippet are one picture: no block of it may hold two of them
            raise ValueError(f"height {self.height}: must be a multiple of {JPEG_BLOCK}")
