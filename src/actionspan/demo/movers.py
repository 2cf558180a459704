"""What moves in a demo video while the person may do nothing.

In the background leaves and television screens; through the scene cars, balls and balloons.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import cv2
import numpy as np

from actionspan.arrays import Float64
from actionspan.demo.person import SHIFT, SHIRTS, Colour, Image, shade
from actionspan.demo.scenes import Mover

_LEAVES = ((58, 104, 44), (82, 128, 52), (104, 146, 64), (70, 96, 38))


Draw = Callable[[Image, int, Float64], None]
"""Draws a frame of a mover onto an image, by the (2, 3) affine map from scene to image."""


def leaves(crowns: Sequence[Mover], time: Float64, rng: np.random.Generator) -> Draw:
    """Make crowns of discs that sway together, each a little in its own way."""
    centres, radii, colours = [], [], []  # (F, 2) in scene pixels of each disc
    for mover in crowns:
        gust = 1 + 0.8 * np.sin(time * rng.uniform(0.3, 0.7) + rng.uniform(0, 6))
        rhythm, strength = rng.uniform(1.2, 2.4), rng.uniform(0.01, 0.06) * mover.width
        for k in range(26):
            angle, away = k * 2.4, 0.5 * np.sqrt((k + 0.5) / 26)
            phase = rng.uniform(0, 1.5)
            sway = gust * strength * (1.2 - away) * np.sin(rhythm * time + phase)
            dip = gust * strength * 0.4 * np.sin(1.7 * rhythm * time + 2 * phase)
            x = mover.x + mover.width * away * np.cos(angle) * 1.25 + sway
            y = mover.y + mover.height * away * np.sin(angle) + dip
            colours.append(shade(_LEAVES[k % len(_LEAVES)], float(rng.uniform(0.85, 1.15))))
            radii.append(mover.width * rng.uniform(0.13, 0.2))
            centres.append(np.column_stack([x, y]))

    def draw(image: Image, frame: int, to_picture: Float64) -> None:
        scale = float(np.hypot(to_picture[0, 0], to_picture[0, 1]))
        places = np.reshape([way[frame] for way in centres], (-1, 2)) @ to_picture[:, :2].T
        fixed = ((places + to_picture[:, 2]) * 16).astype(int).tolist()
        for (x, y), radius, colour in zip(fixed, radii, colours, strict=True):
            cv2.circle(image, (x, y), int(radius * scale * 16), colour, -1, cv2.LINE_AA, SHIFT)

    return draw


def screen(mover: Mover, time: Float64, rng: np.random.Generator) -> Draw:
    """Make a screen that changes its programme every one to four seconds."""
    changes = np.cumsum(rng.uniform(1, 4, 64))
    palette = [[SHIRTS[k] for k in rng.choice(len(SHIRTS), 3, replace=False)] for _ in range(8)]
    ways = [0.5 + 0.4 * np.sin(time * rng.uniform(1, 4) + rng.uniform(0, 6)) for _ in range(2)]
    spot = np.column_stack(ways)  # (F, 2) where something moves on the screen, 0…1
    programme = np.searchsorted(changes, time) % 8
    colours = [(shade(a, 0.8), shade(b, 0.8), shade(c, 0.9)) for a, b, c in palette]
    x, y = mover.x, mover.y
    far_x, far_y = x + mover.width, y + mover.height
    corners = np.array([[x, y], [far_x, y], [far_x, far_y], [x, far_y]])
    origin, size = corners[0], corners[2] - corners[0]
    band = np.array([[0, 0.55], [1, 0.55], [1, 1], [0, 1]])
    thing = np.array([[-0.1, -0.25], [0.1, -0.25], [0.1, 0.25], [-0.1, 0.25]])

    def draw(image: Image, frame: int, to_picture: Float64) -> None:
        low, middle, high = colours[programme[frame]]
        fill(image, corners, low, to_picture)
        fill(image, origin + band * size, middle, to_picture)
        fill(image, origin + (thing + 0.3 + 0.4 * spot[frame]) * size, high, to_picture)

    return draw


def fill(image: Image, corners: Float64, colour: Colour, to_picture: Float64) -> None:
    """Fill a convex polygon of the scene, (K, 2), on the image."""
    mapped = corners @ to_picture[:, :2].T + to_picture[:, 2]
    cv2.fillConvexPoly(image, (mapped * 16).astype(np.int32), colour, cv2.LINE_AA, SHIFT)


_Fixed = list[tuple[Float64, Colour]]  # polygons, (K, 2)
_Turning = list[tuple[Float64, Float64, Colour]]  # polygons about a hub: hub (2,), corners (K, 2)
_Parts = tuple[_Fixed, _Turning]


class Passer(NamedTuple):
    """A thing on its way through the scene in some frames of the video."""

    frames: range
    in_front: bool
    draw: Draw


def make_passer(
    rng: np.random.Generator,
    first: int,
    time: Float64,
    *,
    scene: str,
    size: float,
    ground: tuple[float, float],
    span: tuple[float, float],
) -> Passer:
    """Choose a thing that suits the scene, and its way across it.

    `time` holds the (F,) times of its frames in seconds, from the frame `first` on. The person's
    height `size`, the y of the ground behind and in front of the person, and the x between which
    the thing passes are in scene pixels.
    """
    movers = {"street": ("car", "car", "ball"), "park": ("ball", "car", "balloon")}
    kind = str(rng.choice(movers.get(scene, ("ball", "balloon", "trolley"))))
    in_front = bool(rng.random() < 0.3) and kind != "car"
    colour = SHIRTS[rng.integers(len(SHIRTS))]
    # It passes once, or turns round and leaves where it came from.
    once, back = np.linspace(0, 1, len(time)), 0.62 * np.sin(np.linspace(0, np.pi, len(time)))
    way = once if rng.random() < 0.7 else back
    if rng.random() < 0.5:
        way = 1 - way
    x = span[0] + (span[1] - span[0]) * way
    y = np.full(len(time), ground[1] if in_front else ground[0])
    # Its parts, its height above the ground and the radius of what rolls.
    radius = 1.0
    if kind == "ball":
        radius = size * rng.uniform(0.1, 0.17)
        y -= radius
        if rng.random() < 0.5:  # it bounces
            rhythm, height = rng.uniform(1.0, 1.6), rng.uniform(0.25, 0.7) * size
            y -= height * np.abs(np.sin(np.pi * rhythm * time))
        parts = _ball(radius, colour, SHIRTS[rng.integers(len(SHIRTS))])
    elif kind == "balloon":
        y -= size * (rng.uniform(0.3, 0.9) + 0.15 * np.sin(time * rng.uniform(1, 3)))
        parts = _balloon(size * rng.uniform(0.11, 0.17), colour)
    elif kind == "car":
        length = size * rng.uniform(1.2, 1.5)
        radius = 0.1 * length
        y -= 0.2 * length
        parts = _car(length, colour, forward=bool(x[-1] > x[0]))
    else:
        wide = size * rng.uniform(0.4, 0.55)
        radius = 0.08 * wide
        y -= 0.9 * wide
        parts = _trolley(wide, colour, rng)
    centres, angles = np.column_stack([x, y]), (x - x[0]) / radius  # of what rolls, in radians

    def draw(image: Image, frame: int, to_picture: Float64) -> None:
        centre, angle = centres[frame - first], angles[frame - first]
        fixed, turning = parts
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        for corners, colour in fixed:
            fill(image, centre + corners, colour, to_picture)
        for hub, corners, colour in turning:
            fill(image, centre + hub + corners @ turn, colour, to_picture)

    return Passer(range(first, first + len(time)), in_front, draw)


def _circle(radius: float, corners: int = 20, tall: float = 1.0) -> Float64:
    angle = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return radius * np.column_stack([np.cos(angle), tall * np.sin(angle)])


def _rectangle(x: float, y: float, width: float, height: float) -> Float64:
    return np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]])


def _ball(radius: float, colour: Colour, second: Colour) -> _Parts:
    """A ball of six sectors."""
    turning: _Turning = []
    for k in range(3):
        angles = np.linspace(0, np.pi / 3, 6) + 2 * k * np.pi / 3
        wedge = radius * np.column_stack([np.cos(angles), np.sin(angles)])
        turning.append((np.zeros(2), np.vstack([[[0.0, 0.0]], wedge]), second))
    return [(_circle(radius), colour)], turning


def _balloon(radius: float, colour: Colour) -> _Parts:
    string = _rectangle(-0.8, radius, 1.6, 2.2 * radius)
    glint = _circle(0.28 * radius, 10) + np.array([-0.35, -0.45]) * radius
    balloon = _circle(radius, tall=1.2)
    light = (0.8 * balloon - 0.08 * radius, shade(colour, 1.12))
    return [(string, (90, 90, 94)), (balloon, colour), light, (glint, (250, 250, 246))], []


def _wheels(radius: float, gap: float, y: float) -> _Turning:
    spoke = _rectangle(-0.7 * radius, -0.2 * radius, 1.4 * radius, 0.4 * radius)
    tyre = _circle(radius)
    shapes = ((tyre, (28, 28, 30)), (spoke, (186, 186, 188)))
    return [(np.array([x, y]), shape, tone) for x in (-gap, gap) for shape, tone in shapes]


def _car(length: float, colour: Colour, forward: bool) -> _Parts:
    """A car from the side, `length` long, its middle 0.2·length above the ground."""
    body = np.array([[-0.5, 0.1], [-0.5, -0.03], [-0.46, -0.07], [0.3, -0.07], [0.47, -0.03],
                     [0.5, 0.02], [0.5, 0.1]])  # fmt: skip
    cabin = np.array([[-0.36, -0.06], [-0.28, -0.2], [0.06, -0.2], [0.22, -0.06]])
    back = np.array([[-0.31, -0.07], [-0.25, -0.17], [-0.13, -0.17], [-0.13, -0.07]])
    front = np.array([[-0.1, -0.07], [-0.1, -0.17], [0.04, -0.17], [0.15, -0.07]])
    stripe = _rectangle(-0.5, 0.035, 1.0, 0.02)
    flip = np.array([length if forward else -length, length])
    glass = (172, 204, 216)
    fixed = [(body, colour), (cabin, shade(colour, 0.85)), (back, glass), (front, glass),
             (stripe, shade(colour, 0.65))]  # fmt: skip
    wheels = _wheels(0.085 * length, 0.29 * length, 0.115 * length)
    return [(part * flip, tone) for part, tone in fixed], wheels


def _trolley(wide: float, colour: Colour, rng: np.random.Generator) -> _Parts:
    """A cart of boxes, `wide` pixels wide, its middle 0.9·wide above the ground."""
    fixed: _Fixed = [
        (_rectangle(-0.5 * wide, 0.55 * wide, wide, 0.12 * wide), (96, 98, 104)),
        (_rectangle(-0.55 * wide, -0.35 * wide, 0.07 * wide, wide), (120, 122, 128)),
        (_rectangle(-0.45 * wide, -0.1 * wide, 0.9 * wide, 0.65 * wide), colour),
        (_rectangle(-0.45 * wide, 0.15 * wide, 0.9 * wide, 0.08 * wide), shade(colour, 0.7)),
        (_rectangle(-0.3 * wide, -0.5 * wide, 0.55 * wide, 0.4 * wide), (190, 148, 98)),
        (_rectangle(-0.07 * wide, -0.5 * wide, 0.1 * wide, 0.4 * wide), (222, 196, 150)),
    ]
    if rng.random() < 0.5:
        top = _rectangle(-0.2 * wide, -0.75 * wide, 0.3 * wide, 0.25 * wide)
        fixed.append((top, (86, 128, 150)))
    return fixed, _wheels(0.11 * wide, 0.36 * wide, 0.78 * wide)
