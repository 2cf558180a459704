"""The person of a demo video as coloured polygons: body, clothes and a little shading.

All polygons of all frames are computed at once; drawing a frame then only fills them.
"""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from actionspan.demo.poses import SIDES, Floats

Colour = tuple[int, int, int]
Image = npt.NDArray[Any]

SHIFT = 4
"""Binary digits behind the point of the coordinates that OpenCV draws."""

SKINS: tuple[Colour, ...] = ((246, 206, 176), (224, 172, 132), (178, 124, 84), (116, 76, 52))
HAIRS: tuple[Colour, ...] = (
    (38, 28, 24),
    (92, 58, 32),
    (172, 128, 66),
    (120, 116, 112),
    (122, 50, 24),
)
SHIRTS: tuple[Colour, ...] = (
    (206, 44, 52), (36, 92, 190), (238, 182, 36), (34, 142, 84), (232, 112, 36), (122, 54, 148),
    (240, 240, 236), (28, 152, 170), (214, 84, 138),
)  # fmt: skip
TROUSERS: tuple[Colour, ...] = (
    (34, 40, 66),
    (52, 74, 122),
    (62, 56, 52),
    (24, 24, 28),
    (124, 100, 70),
)
SHOES: tuple[Colour, ...] = ((236, 236, 236), (30, 28, 28), (150, 40, 36), (96, 62, 36))


def shade(colour: Colour, factor: float) -> Colour:
    """Darken (`factor` < 1) or lighten a colour."""
    red, green, blue = (int(min(255, round(part * factor))) for part in colour)
    return red, green, blue


@dataclass(frozen=True, kw_only=True)
class Clothes:
    """What a person looks like; widths are relative to an average build."""

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
        skin=SKINS[rng.integers(len(SKINS))],
        hair=HAIRS[rng.integers(len(HAIRS))],
        shirt=shirt,
        stripe=stripe,
        trousers=TROUSERS[rng.integers(len(TROUSERS))],
        shoes=SHOES[rng.integers(len(SHOES))],
        striped=bool(rng.random() < 0.5),
        long_sleeves=bool(rng.random() < 0.5),
        shorts=bool(rng.random() < 0.25),
        long_hair=bool(rng.random() < 0.4),
        build=float(rng.uniform(0.95, 1.15)),
    )


def _capsule(a: Floats, b: Floats, radius_a: float, radius_b: float, corners: int = 6) -> Floats:
    """Return (F, 2·corners, 2) outlines of limbs from `a` to `b` with round ends."""
    along = b - a
    angle = np.arctan2(along[:, 1], along[:, 0])[:, None]
    half = np.linspace(0.5 * np.pi, 1.5 * np.pi, corners)
    back, front = angle + half, angle + half + np.pi
    return np.concatenate(
        [
            a[:, None] + radius_a * np.stack([np.cos(back), np.sin(back)], axis=2),
            b[:, None] + radius_b * np.stack([np.cos(front), np.sin(front)], axis=2),
        ],
        axis=1,
    )


def _trunk(
    hips: Floats, neck: Floats, widths: Floats, profile: tuple[tuple[float, float], ...]
) -> Floats:
    """Return (F, 2·P, 2) outlines round the axis hips–neck.

    Args:
        hips: (F, 2).
        neck: (F, 2).
        widths: (F,) half widths of the trunk.
        profile: P pairs (position on the axis, 0 hips to 1 neck; part of the half width).
    """
    up = neck - hips
    length = np.linalg.norm(up, axis=1, keepdims=True)
    side = np.stack([-up[:, 1], up[:, 0]], axis=1) / np.maximum(length, 1e-6)
    right = [hips + where * up + part * widths[:, None] * side for where, part in profile]
    left = [hips + where * up - part * widths[:, None] * side for where, part in profile[::-1]]
    return np.stack(right + left, axis=1)


SHIRT_PROFILE = ((-0.12, 0.8), (0.0, 0.84), (0.45, 0.84), (0.82, 1.02), (0.94, 0.9), (1.0, 0.42))
PELVIS_PROFILE = ((-0.26, 0.62), (-0.2, 0.78), (0.1, 0.84))
STRIPES = (((0.2, 0.84), (0.34, 0.84)), ((0.5, 0.87), (0.64, 0.94)))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A person in all frames of a video, ready to draw."""

    polygons: list[npt.NDArray[np.int32]]
    """One (F, corners, 2) array a part, in 1/16 pixels."""
    colours: list[Colour]
    left_first: list[int]
    """The parts from far to near while the left side is the far one."""
    right_first: list[int]
    left_is_far: npt.NDArray[np.bool_]
    shadows: npt.NDArray[np.int32]
    """(F, 3) centre x, centre y and half width of the contact shadow, in pixels."""


def build_figure(
    at: dict[str, Floats], turn: Floats, sizes: Floats, to_picture: Floats, clothes: Clothes
) -> Figure:
    """Turn joints into polygons on the picture.

    Args:
        at: The joints from `demo_poses.joints`, (F, 2) each, in body heights.
        turn: (F,) how far the person is turned away from facing the camera, in radians.
        sizes: (F,) body heights in pixels of the scene.
        to_picture: (F, 2, 3) affine maps from body heights to the picture.
        clothes: Colours and widths.
    """
    parts: list[tuple[str, Floats, Colour]] = []
    wide = clothes.build
    arm_colour = clothes.shirt if clothes.long_sleeves else clothes.skin
    shin_colour = clothes.skin if clothes.shorts else clothes.trousers

    def limb(group: str, a: Floats, b: Floats, radii: tuple[float, float], colour: Colour) -> None:
        outline = _capsule(a, b, wide * radii[0], wide * radii[1])
        parts.append((group, outline, shade(colour, 0.78)))
        light = np.array([-0.22 * radii[0], -0.12 * radii[0]])
        inner = _capsule(a + light, b + light, 0.66 * wide * radii[0], 0.62 * wide * radii[1])
        parts.append((group, inner, colour))

    for side in SIDES:
        joint = {name: at[f"{side}_{name}"] for name in
                 ("shoulder", "elbow", "wrist", "hand", "hip", "knee", "ankle", "toe")}  # fmt: skip
        limb(f"{side} leg", joint["ankle"], joint["toe"], (0.028, 0.021), clothes.shoes)
        limb(f"{side} leg", joint["knee"], joint["ankle"], (0.042, 0.028), shin_colour)
        limb(f"{side} leg", joint["hip"], joint["knee"], (0.058, 0.044), clothes.trousers)
        limb(f"{side} arm", joint["wrist"], joint["hand"], (0.022, 0.024), clothes.skin)
        limb(f"{side} arm", joint["elbow"], joint["wrist"], (0.03, 0.023), arm_colour)
        limb(f"{side} arm", joint["shoulder"], joint["elbow"], (0.037, 0.031), clothes.shirt)
    hips, neck, head = at["hips"], at["neck"], at["head"]
    widths = wide * np.hypot(0.118 * np.cos(turn), 0.075 * np.sin(turn))
    body = [
        (_trunk(hips, neck, widths, PELVIS_PROFILE), shade(clothes.trousers, 0.85)),
        (_trunk(hips, neck, widths, SHIRT_PROFILE), shade(clothes.shirt, 0.8)),
        (_trunk(hips - 0.01, neck - 0.008, 0.72 * widths, SHIRT_PROFILE[1:5]), clothes.shirt),
    ]
    if clothes.striped:
        body += [(_trunk(hips, neck, widths, stripe), clothes.stripe) for stripe in STRIPES]
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

    groups: dict[str, list[int]] = {}
    for index, (group, _, _) in enumerate(parts):
        groups.setdefault(group, []).append(index)
    orders = [
        groups[f"{far} arm"] + groups[f"{far} leg"] + groups[f"{near} leg"] + groups["body"]
        + groups[f"{near} arm"]
        for far, near in (SIDES, SIDES[::-1])
    ]  # fmt: skip
    polygons = [_to_fixed(_apply(to_picture, outline)) for _, outline, _ in parts]
    ankles = (at["left_ankle"] + at["right_ankle"]) / 2
    middle = (head[:, 0] + ankles[:, 0]) / 2
    ground = _apply(to_picture, np.stack([middle, 0 * middle], axis=1)[:, None])[:, 0]
    half = (0.13 + 0.42 * np.abs(head[:, 0] - ankles[:, 0])) * sizes
    shadows = np.column_stack([ground, half]).round().astype(np.int32)
    return Figure(
        polygons=polygons,
        colours=[colour for _, _, colour in parts],
        left_first=orders[0],
        right_first=orders[1],
        left_is_far=np.sin(turn) > 0,
        shadows=shadows,
    )


def _apply(maps: Floats, points: Floats) -> Floats:
    """Map (F, K, 2) points by (F, 2, 3) affine maps."""
    mapped: Floats = points @ maps[:, :, :2].transpose(0, 2, 1) + maps[:, None, :, 2]
    return mapped


def _to_fixed(points: Floats) -> npt.NDArray[np.int32]:
    return np.round(points * (1 << SHIFT)).astype(np.int32)


def draw_shadow(image: Image, x: int, y: int, half: int) -> None:
    """Darken an ellipse on the ground."""
    tall = max(3, min(half // 4, 7))
    top, left = max(0, y - tall - 1), max(0, x - half - 1)
    part = image[top : max(0, y + tall + 2), left : max(0, x + half + 2)]
    if part.size:
        dark = part.copy()
        cv2.ellipse(dark, (x - left, y - top), (half, tall), 0, 0, 360, (16, 16, 20), -1)
        cv2.addWeighted(part, 0.6, dark, 0.4, 0, dst=part)


def draw_figure(image: Image, figure: Figure, frame: int) -> None:
    """Draw the person of one frame onto an RGB picture."""
    order = figure.left_first if figure.left_is_far[frame] else figure.right_first
    for part in order:
        cv2.fillConvexPoly(
            image, figure.polygons[part][frame], figure.colours[part], cv2.LINE_AA, SHIFT
        )
