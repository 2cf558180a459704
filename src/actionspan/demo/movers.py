"""What moves in the background of a demo video: leaves in the wind and television screens."""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from actionspan.arrays import Float64, Int64
from actionspan.demo.person import SHIFT, SHIRTS, Colour, Image, shade
from actionspan.demo.scenes import Mover

_LEAVES = ((58, 104, 44), (82, 128, 52), (104, 146, 64), (70, 96, 38))


class Disc(NamedTuple):
    """A disc that moves."""

    centres: Float64  # (F, 2) in scene pixels
    radius: float
    colour: Colour


class Screen(NamedTuple):
    """A screen with programmes."""

    corners: Float64  # (4, 2) in the scene
    picture: Int64  # (F,) which of the programmes is on
    spot: Float64  # (F, 2) where something moves on the screen, 0…1
    colours: list[tuple[Colour, Colour, Colour]]  # of each programme


def leaves(mover: Mover, time: Float64, rng: np.random.Generator) -> list[Disc]:
    """Make a crown of discs that sway together, each a little in its own way."""
    discs = []
    gust = 1 + 0.8 * np.sin(time * rng.uniform(0.3, 0.7) + rng.uniform(0, 6))
    rhythm, strength = rng.uniform(1.2, 2.4), rng.uniform(0.01, 0.06) * mover.width
    for k in range(26):
        angle, away = k * 2.4, 0.5 * np.sqrt((k + 0.5) / 26)
        phase = rng.uniform(0, 1.5)
        sway = gust * strength * (1.2 - away) * np.sin(rhythm * time + phase)
        dip = gust * strength * 0.4 * np.sin(1.7 * rhythm * time + 2 * phase)
        x = mover.x + mover.width * away * np.cos(angle) * 1.25 + sway
        y = mover.y + mover.height * away * np.sin(angle) + dip
        colour = shade(_LEAVES[k % len(_LEAVES)], float(rng.uniform(0.85, 1.15)))
        radius = mover.width * rng.uniform(0.13, 0.2)
        discs.append(Disc(np.column_stack([x, y]), radius, colour))
    return discs


def screen(mover: Mover, time: Float64, rng: np.random.Generator) -> Screen:
    """Make a screen whose programme changes every one to four seconds."""
    changes = np.cumsum(rng.uniform(1, 4, 64))
    palette = [[SHIRTS[k] for k in rng.choice(len(SHIRTS), 3, replace=False)] for _ in range(8)]
    spot = [0.5 + 0.4 * np.sin(time * rng.uniform(1, 4) + rng.uniform(0, 6)) for _ in range(2)]
    x, y = mover.x, mover.y
    far_x, far_y = x + mover.width, y + mover.height
    return Screen(
        corners=np.array([[x, y], [far_x, y], [far_x, far_y], [x, far_y]]),
        picture=np.searchsorted(changes, time) % 8,
        spot=np.column_stack(spot),
        colours=[(shade(a, 0.8), shade(b, 0.8), shade(c, 0.9)) for a, b, c in palette],
    )


def draw_discs(image: Image, discs: Sequence[Disc], frame: int, to_picture: Float64) -> None:
    """Draw one frame of the discs."""
    scale = float(np.hypot(to_picture[0, 0], to_picture[0, 1]))
    centres = np.stack([disc.centres[frame] for disc in discs]) @ to_picture[:, :2].T
    fixed = ((centres + to_picture[:, 2]) * 16).astype(int).tolist()
    for (x, y), disc in zip(fixed, discs, strict=True):
        radius = int(disc.radius * scale * 16)
        cv2.circle(image, (x, y), radius, disc.colour, -1, cv2.LINE_AA, SHIFT)


def draw_screen(image: Image, shown: Screen, frame: int, to_picture: Float64) -> None:
    """Draw one frame of a screen."""
    low, middle, high = shown.colours[shown.picture[frame]]
    origin, size = shown.corners[0], shown.corners[2] - shown.corners[0]
    band = np.array([[0, 0.55], [1, 0.55], [1, 1], [0, 1]])
    thing = np.array([[-0.1, -0.25], [0.1, -0.25], [0.1, 0.25], [-0.1, 0.25]])
    fill(image, shown.corners, low, to_picture)
    fill(image, origin + band * size, middle, to_picture)
    fill(image, origin + (thing + 0.3 + 0.4 * shown.spot[frame]) * size, high, to_picture)


def fill(image: Image, corners: Float64, colour: Colour, to_picture: Float64) -> None:
    """Fill a convex polygon of the scene, (K, 2), on the picture."""
    mapped = corners @ to_picture[:, :2].T + to_picture[:, 2]
    cv2.fillConvexPoly(image, (mapped * 16).astype(np.int32), colour, cv2.LINE_AA, SHIFT)
