"""A fixed camera: events in the yard, and a pavement at the lower edge on which people walk."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from video.numbered import write_film
from video.test_bouts import pictures

SECONDS = 28.0
MOVES = ((6.0, 9.0), (14.0, 17.0), (22.0, 25.0))  # seconds: left, right and left again


def _half(name: str, left: float, right: float) -> dict[str, Any]:
    return {"name": name, "points": [[left, 0], [right, 0], [right, 0.8], [left, 0.8]]}


LEFT, RIGHT = _half("left", 0, 0.5), _half("right", 0.5, 1)


def camera(path: Path, noise: float = 3) -> Path:
    """Write the video."""
    return write_film(path, scene(noise=noise), rate=Fraction(25))


def scene(pavement: bool = True, noise: float = 3) -> Iterator[np.ndarray]:
    """Draw the frames: someone walks by for half of every five seconds, if there is a pavement."""
    for number, picture in enumerate(pictures(rate=25, seconds=SECONDS, moves=MOVES, noise=noise)):
        if pavement and number % 125 < 62:
            x = number % 125 * 280 // 62
            picture[205:235, x : x + 30] = 220
        yield picture
