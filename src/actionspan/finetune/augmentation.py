"""What part of a video's pictures is seen, and whether mirrored: the same in all its snippets.

A box that moved from snippet to snippet would be motion that the video does not have. It is given
in fractions, so that it is the same of RGB and of flow, at any size.
"""

from dataclasses import dataclass

import numpy as np

_LEAST_SIDE = 0.8  # of each side of the picture
_DRAW = 4004  # sets these draws apart from others of the same seed, epoch and place


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """A box of the picture, in fractions of its height and width, mirrored or not.

    Raises:
        ValueError: The box is empty or not within the picture.
    """

    top: float = 0.0
    left: float = 0.0
    height: float = 1.0
    width: float = 1.0
    flip: bool = False

    def __post_init__(self) -> None:
        for first, length in ((self.top, self.height), (self.left, self.width)):
            if not (0 <= first < 1 and 0 < length <= 1 and first + length <= 1 + 1e-9):
                raise ValueError(f"{self}: a box within 0 … 1 of each side")

    def box(self, height: int, width: int) -> tuple[slice, slice]:
        """Return the rows and columns of a picture of so many pixels; at least one of each."""
        return _pixels(self.top, self.height, height), _pixels(self.left, self.width, width)


NONE = Augmentation()
"""The whole picture as it is."""


def draw(seed: int, epoch: int, place: int) -> Augmentation:
    """Draw what an epoch shows of a video: 0.8 to 1 of each side, mirrored half of the time.

    Args:
        seed: Of the training, 0 or more.
        epoch: Its number.
        place: Of the video in the epoch's order: neither ranks nor threads change the draw.
    """
    random = np.random.default_rng((seed, epoch, place, _DRAW))
    height, width = random.uniform(_LEAST_SIDE, 1.0, 2)
    return Augmentation(
        top=float(random.uniform(0.0, 1.0 - height)),
        left=float(random.uniform(0.0, 1.0 - width)),
        height=float(height),
        width=float(width),
        flip=bool(random.integers(2)),
    )


def _pixels(first: float, length: float, size: int) -> slice:
    begin = min(round(first * size), size - 1)
    return slice(begin, min(max(begin + 1, round((first + length) * size)), size))
