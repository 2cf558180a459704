"""Settings of the clips that classifiers are trained on: how they are stored and where from."""

from dataclasses import dataclass

from actionspan.settings import option

JPEG_BLOCK = 8  # pixels a side
JPEG_LONGEST = 65500  # pixels: libjpeg's limit


@dataclass(frozen=True, kw_only=True)
class ClipSettings:
    """What is kept of a clip, and which clips untrimmed videos and folders give."""

    stack: int = option(
        10,
        "L, flows at a position of a trimmed clip; segments of untrimmed videos have the L of "
        "the video stage",
    )
    snippet_frames: int = option(
        8, "distance of the positions stored of a trimmed clip", unit="frames"
    )
    height: int = option(
        256, "frames and flow planes are stored with this height, a multiple of 8", unit="pixels"
    )
    width: int = option(340, "and this width, at least the height", unit="pixels")
    jpeg_quality: int = option(90, "of the stored frames and flow planes, 1 to 100")
    background: bool = option(
        True, "stretches of untrimmed videos between instances are clips of class background"
    )
    background_margin: float = option(
        0.5, "background keeps this distance from instances", unit="seconds"
    )
    background_ratio: float = option(
        1.0, "background clips of a video, at most, for each of its instances; inf: all"
    )
    validation_fraction: float = option(
        0.25,
        "part of the groups of each class, or of the untrimmed training videos, held out to "
        "validate where no split says which",
    )

    def __post_init__(self) -> None:
        for name in ("stack", "snippet_frames"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: at least 1")
        if self.height < 32 or self.height % JPEG_BLOCK:
            # the planes of a position are one picture: in no block of it may two of them meet
            raise ValueError(f"height is {self.height}: a multiple of {JPEG_BLOCK} from 32")
        if not self.height <= self.width <= JPEG_LONGEST:
            raise ValueError(f"width is {self.width}: at least the height, {self.height}")
        if 2 * self.stack * self.height > JPEG_LONGEST:
            most = JPEG_LONGEST // (2 * self.height)
            raise ValueError(f"stack is {self.stack}: at most {most} planes of such a height fit")
        if not 1 <= self.jpeg_quality <= 100:
            raise ValueError(f"jpeg_quality is {self.jpeg_quality}: from 1 to 100")
        if not 0 <= self.background_margin < float("inf"):
            raise ValueError(f"background_margin is {self.background_margin}: 0 or more seconds")
        if not self.background_ratio > 0:
            raise ValueError(f"background_ratio is {self.background_ratio}: above 0, or inf")
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction is {self.validation_fraction}: 0 up to below 1")
