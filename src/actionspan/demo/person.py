"""The person of a demo video as coloured polygons: body, clothes and a little shading.

All polygons of all frames are computed at once; drawing a frame then only fills them.
"""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from actionspan.arrays import Float64
from actionspan.demo.poses import SIDES

Colour = tuple[int, int, int]
Image = npt.NDArray[Any]

SHIFT = 4  # binary digits behind the point of the coordinates that OpenCV draws

_SKINS = ((246, 206, 176), (224, 172, 132), (178, 124, 84), (116, 76, 52))
_HAIRS = ((38, 28, 24), (92, 58, 32), (172, 128, 66), (120, 116, 112), (122, 50, 24))
SHIRTS = (
    (206, 44, 52), (36, 92, 190), (238, 182, 36), (34, 142, 84), (232, 112, 36), (122, 54, 148),
    (240, 240, 236), (28, 152, 170), (214, 84, 138),
)  # fmt: skip
_TROUSERS = ((34, 40, 66), (52, 74, 122), (62, 56, 52), (24, 24, 28), (124, 100, 70))
_SHOES = ((236, 236, 236), (30, 28, 28), (150, 40, 36), (96, 62, 36))


def shade(colour: Colour, factor: float) -> Colour:
    """Darken (`factor` < 1) or lighten a colour."""
    red, green, blue = (min(255, round(part * factor)) for part in colour)
    return red, green, blue


@dataclass(frozen=True, kw_only=True)
class Clothes:
    """The look of a person; `build` is the width relative to an average build."""

    skin: Colour
    hair: Colour
    shirt: Colour
    stripe: Colour
    trousers: Colour
    shoes: Colour
    striped: bool
    long_sleeves: bool
    shorts: bool
    long_hair: bool
    build: float


def random_clothes(rng: np.random.Generator) -> Clothes:
    """Dress a person; stripe and trousers never have the colour of the shirt."""
    shirt, stripe = (SHIRTS[k] for k in rng.choice(len(SHIRTS), 2, replace=False))
    return Clothes(
        skin=_SKINS[rng.integers(len(_SKINS))],
        hair=_HAIRS[rng.integers(len(_HAIRS))],
        shirt=shirt,
        stripe=stripe,
        trousers=_TROUSERS[rng.integers(len(_TROUSERS))],
        shoes=_SHOES[rng.integers(len(_SHOES))],
        striped=bool(rng.random() < 0.5),
        long_sleeves=bool(rng.random() < 0.5),
        shorts=bool(rng.random() < 0.25),
        long_hair=bool(rng.random() < 0.4),
        build=float(rng.uniform(0.95, 1.15)),
    )


def _capsule(a: Float64, b: Float64, radius_a: float, radius_b: float, corners: int = 6) -> Float64:
    """Return (F, 2·corners, 2) outlines of limbs from `a` to `b` with round ends."""
    along = b - a
    angle = np.arctan2(along[:, 1], along[:, 0])[:, None]
    back = angle + np.linspace(0.5 * np.pi, 1.5 * np.pi, corners)
    ends = [
        end[:, None] + radius * np.stack([np.cos(around), np.sin(around)], axis=2)
        for end, radius, around in ((a, radius_a, back), (b, radius_b, back + np.pi))
    ]
    return np.concatenate(ends, axis=1)


def _trunk(
    hips: Float64, neck: Float64, widths: Float64, profile: tuple[tuple[float, float], ...]
) -> Float64:
    """Return (F, 2·P, 2) outlines round the axis from hips to neck, (F, 2) each.

    `widths` are (F,) half widths, and `profile` holds P pairs: a position on the axis from 0 (hips)
    to 1 (neck) and a fraction of the half width.
    """
    up = neck - hips
    length = np.linalg.norm(up, axis=1, keepdims=True)
    side = np.stack([-up[:, 1], up[:, 0]], axis=1) / np.maximum(length, 1e-6)
    right = [hips + where * up + part * widths[:, None] * side for where, part in profile]
    left = [hips + where * up - part * widths[:, None] * side for where, part in profile[::-1]]
    return np.stack(right + left, axis=1)


_SHIRT_PROFILE = ((-0.12, 0.8), (0.0, 0.84), (0.45, 0.84), (0.82, 1.02), (0.94, 0.9), (1.0, 0.42))
_PELVIS_PROFILE = ((-0.26, 0.62), (-0.2, 0.78), (0.1, 0.84))
_STRIPES = (((0.2, 0.84), (0.34, 0.84)), ((0.5, 0.87), (0.64, 0.94)))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A person in all frames of a video, ready to draw."""

    polygons: list[npt.NDArray[np.int32]]  # (F, corners, 2) for each part, in 1/16 pixels
    colours: list[Colour]
    orders: list[list[int]]  # the parts from far to near: left side far, right side far
    left_is_far: npt.NDArray[np.bool_]  # (F,)
    shadows: npt.NDArray[np.int32]  # (F, 3) x, y and half width of the contact shadow, in pixels


def build_figure(
    at: dict[str, Float64], turn: Float64, sizes: Float64, to_picture: Float64, clothes: Clothes
) -> Figure:
    """Turn joints into polygons on the image.

    `at` holds the joints of `poses.joints`, `turn` (F,) the angles away from facing the camera in
    radians, `sizes` (F,) body heights in pixels of the scene, and `to_picture` (F, 2, 3) affine
    maps from body heights to the image.
    """
    parts: list[tuple[str, Float64, Colour]] = []
    wide = clothes.build

    def limb(group: str, a: str, b: str, radii: tuple[float, float], colour: Colour) -> None:
        side = group.split()[0]
        start, end = at[f"{side}_{a}"], at[f"{side}_{b}"]
        outline = _capsule(start, end, wide * radii[0], wide * radii[1])
        parts.append((group, outline, shade(colour, 0.78)))
        light = np.array([-0.22 * radii[0], -0.12 * radii[0]])
        inner = _capsule(start + light, end + light, 0.66 * wide * radii[0], 0.62 * wide * radii[1])
        parts.append((group, inner, colour))

    # Arms and legs.
    arm_colour = clothes.shirt if clothes.long_sleeves else clothes.skin
    shin_colour = clothes.skin if clothes.shorts else clothes.trousers
    for side in SIDES:
        limb(f"{side} leg", "ankle", "toe", (0.028, 0.021), clothes.shoes)
        limb(f"{side} leg", "knee", "ankle", (0.042, 0.028), shin_colour)
        limb(f"{side} leg", "hip", "knee", (0.058, 0.044), clothes.trousers)
        limb(f"{side} arm", "wrist", "hand", (0.022, 0.024), clothes.skin)
        limb(f"{side} arm", "elbow", "wrist", (0.03, 0.023), arm_colour)
        limb(f"{side} arm", "shoulder", "elbow", (0.037, 0.031), clothes.shirt)
    # The trunk.
    hips, neck, head = at["hips"], at["neck"], at["head"]
    widths = wide * np.hypot(0.118 * np.cos(turn), 0.075 * np.sin(turn))
    body = [
        (_trunk(hips, neck, widths, _PELVIS_PROFILE), shade(clothes.trousers, 0.85)),
        (_trunk(hips, neck, widths, _SHIRT_PROFILE), shade(clothes.shirt, 0.8)),
        (_trunk(hips - 0.01, neck - 0.008, 0.72 * widths, _SHIRT_PROFILE[1:5]), clothes.shirt),
    ]
    if clothes.striped:
        body += [(_trunk(hips, neck, widths, stripe), clothes.stripe) for stripe in _STRIPES]
    # Neck, hair, face and eyes.
    up = (head - neck) / np.linalg.norm(head - neck, axis=1, keepdims=True)
    across = np.stack([-up[:, 1], up[:, 0]], axis=1)
    ahead = np.sin(turn)[:, None] * across
    face = head + 0.02 * ahead - 0.008 * up
    body.append((_capsule(neck - 0.01, head, 0.034, 0.034), shade(clothes.skin, 0.75)))
    crown, nape = head + 0.022 * up, head - (0.09 if clothes.long_hair else 0.0) * up
    behind = -0.018 * ahead
    body.append((_capsule(crown + behind, nape + 1.5 * behind, 0.067, 0.058, 9), clothes.hair))
    body.append((_capsule(face + 0.008 * up, face - 0.026 * up, 0.053, 0.043, 9), clothes.skin))
    for sign in (-1, 1):
        eye = face + 0.045 * np.sin(turn + sign * 0.38)[:, None] * across + 0.012 * up
        body.append((_capsule(eye, eye, 0.0075, 0.0075, 4), (30, 26, 26)))
    parts += [("body", outline, colour) for outline, colour in body]

    # Which parts hide which: the far side, the body, the near arm.
    groups: dict[str, list[int]] = {}
    for index, (group, _, _) in enumerate(parts):
        groups.setdefault(group, []).append(index)
    orders = [
        groups[f"{far} arm"] + groups[f"{far} leg"] + groups[f"{near} leg"] + groups["body"]
        + groups[f"{near} arm"]
        for far, near in (SIDES, SIDES[::-1])
    ]  # fmt: skip
    outlines = [_apply(to_picture, outline) * (1 << SHIFT) for _, outline, _ in parts]
    # The shadow is on the ground, below the middle of head and ankles.
    ankles = (at["left_ankle"] + at["right_ankle"]) / 2
    middle = (head[:, 0] + ankles[:, 0]) / 2
    ground = _apply(to_picture, np.stack([middle, 0 * middle], axis=1)[:, None])[:, 0]
    half = (0.13 + 0.42 * np.abs(head[:, 0] - ankles[:, 0])) * sizes
    return Figure(
        polygons=[np.round(outline).astype(np.int32) for outline in outlines],
        colours=[colour for _, _, colour in parts],
        orders=orders,
        left_is_far=np.sin(turn) > 0,
        shadows=np.column_stack([ground, half]).round().astype(np.int32),
    )


def _apply(maps: Float64, points: Float64) -> Float64:
    """Map (F, K, 2) points by (F, 2, 3) affine maps."""
    mapped: Float64 = points @ maps[:, :, :2].transpose(0, 2, 1) + maps[:, None, :, 2]
    return mapped


def _draw_shadow(image: Image, x: int, y: int, half: int) -> None:
    """Darken an ellipse on the ground."""
    tall = max(3, min(half // 4, 7))
    top, left = max(0, y - tall - 1), max(0, x - half - 1)
    part = image[top : max(0, y + tall + 2), left : max(0, x + half + 2)]
    if part.size:
        dark = part.copy()
        cv2.ellipse(dark, (x - left, y - top), (half, tall), 0, 0, 360, (16, 16, 20), -1)
        cv2.addWeighted(part, 0.6, dark, 0.4, 0, dst=part)


def draw_figure(image: Image, figure: Figure, frame: int) -> None:
    """Draw the person of one frame and the shadow onto an RGB image."""
    _draw_shadow(image, *figure.shadows[frame].tolist())
    for part in figure.orders[0 if figure.left_is_far[frame] else 1]:
        outline, colour = figure.polygons[part][frame], figure.colours[part]
        cv2.fillConvexPoly(image, outline, colour, cv2.LINE_AA, SHIFT)
