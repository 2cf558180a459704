"""The backgrounds of demo videos: textured stills, larger than the image, for a moving camera.

A scene is painted once for each shot; `Scene.movers` lists what moves by itself in it (a
television, leaves in the wind), which `movers` draws.
"""

from typing import NamedTuple

import cv2
import numpy as np

from actionspan.arrays import Float64
from actionspan.demo.person import Colour, Image, shade


class Mover(NamedTuple):
    """A part of a scene that moves by itself, at a rectangle of the scene in pixels."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Scene(NamedTuple):
    """A background, RGB, and what moves in it."""

    image: Image
    movers: list[Mover]


def _noise(
    rng: np.random.Generator, height: int, width: int, cells: int, octaves: int = 3
) -> Float64:
    """Return (height, width) smooth noise of mean 0, about −1…1, with `cells` bumps across."""
    total = np.zeros((height, width))
    for octave in range(octaves):
        across = cells * 2**octave
        down = max(2, round(across * height / width))
        coarse = rng.uniform(-1, 1, (down, max(2, across)))
        total += cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC) * 0.6**octave
    return total


def _textured(image: Image, rng: np.random.Generator, amount: float, cells: int) -> Image:
    """Vary the brightness of an image by smooth and by fine noise."""
    height, width = image.shape[:2]
    change = amount * _noise(rng, height, width, cells)
    change += 0.4 * amount * rng.uniform(-1, 1, (height, width))
    return np.clip(image * (1 + change[:, :, None]), 0, 255).astype(np.uint8)


def _colour(rng: np.random.Generator, *choices: Colour) -> Colour:
    return shade(choices[rng.integers(len(choices))], float(rng.uniform(0.88, 1.1)))


def _box(image: Image, x: float, y: float, width: float, height: float, colour: Colour) -> None:
    cv2.rectangle(image, (round(x), round(y)), (round(x + width), round(y + height)), colour, -1)


def _shelf(image: Image, rng: np.random.Generator, x: float, y: float, unit: float) -> None:
    """Draw a bookcase: three boards of books."""
    _box(image, x, y, 2.2 * unit, 3.3 * unit, (92, 62, 38))
    for board in range(3):
        bottom = y + (1.05 + 1.08 * board) * unit
        left = x + 0.1 * unit
        while left < x + 1.95 * unit:
            wide, tall = rng.uniform(0.1, 0.22) * unit, rng.uniform(0.55, 0.9) * unit
            red, green, blue = rng.integers(40, 215, 3).tolist()
            _box(image, left, bottom - tall, wide, tall, (red, green, blue))
            left += wide + 1
        _box(image, x, bottom, 2.2 * unit, 0.1 * unit, (66, 44, 28))


def _window(
    image: Image, rng: np.random.Generator, x: float, y: float, width: float, height: float
) -> None:
    """Draw a window with a frame, the sky and a line of trees behind it."""
    _box(image, x - 3, y - 3, width + 6, height + 6, (232, 228, 220))
    for row in range(round(height)):
        part = row / height
        colour = (int(150 + 60 * part), int(190 + 35 * part), int(232 + 8 * part))
        cv2.line(image, (round(x), round(y + row)), (round(x + width), round(y + row)), colour)
    for _ in range(9):
        place = (round(x + rng.uniform(0.05, 0.95) * width), round(y + 0.93 * height))
        radius = round(rng.uniform(0.06, 0.16) * height)
        cv2.circle(image, place, radius, _colour(rng, (76, 122, 66)), -1, cv2.LINE_AA)
    middle = x + width / 2
    _box(image, middle - 2, y, 4, height, (232, 228, 220))
    _box(image, x, y + height * 0.45, width, 3, (232, 228, 220))
    _box(image, x - 6, y + height + 3, width + 12, 5, (204, 196, 184))


def _floor(
    image: Image, rng: np.random.Generator, horizon: int, colour: Colour, planks: bool
) -> None:
    """Draw a floor below the horizon: planks or tiles that run towards a vanishing point."""
    # Lines to the vanishing point, and planks between them.
    height, width = image.shape[:2]
    image[horizon:] = colour
    vanish = (round(width * rng.uniform(0.35, 0.65)), round(horizon - 0.5 * height))
    line = shade(colour, 0.74)
    step = rng.uniform(0.07, 0.12) * width
    for k in range(-30, 31):
        foot = (round(vanish[0] + k * step * 2.2), height)
        slope = (horizon - vanish[1]) / (height - vanish[1])
        top = (round(vanish[0] + (foot[0] - vanish[0]) * slope), horizon)
        if planks and k % 2:
            following = (round(vanish[0] + (k + 1) * step * 2.2), height)
            end = (round(vanish[0] + (following[0] - vanish[0]) * slope), horizon)
            tone = shade(colour, float(rng.uniform(0.86, 1.1)))
            cv2.fillConvexPoly(image, np.array([top, end, following, foot]), tone, cv2.LINE_AA)
        cv2.line(image, top, foot, line, 1, cv2.LINE_AA)
    # The lines across of tiles, farther apart towards the viewer.
    y, depth = float(horizon), 0.06 * height
    while not planks and y < height:
        cv2.line(image, (0, round(y)), (width, round(y)), line, 1, cv2.LINE_AA)
        y += depth
        depth *= 1.3


def _painting(image: Image, rng: np.random.Generator, x: float, y: float, unit: float) -> None:
    """Draw a framed painting of coloured clouds."""
    _box(image, x, y, 0.85 * unit, 1.05 * unit, (58, 44, 34))
    clouds = 140 + 55 * np.stack([_noise(rng, 20, 16, 3) for _ in range(3)], axis=2)
    coloured = np.clip(clouds, 0, 255).astype(np.uint8)
    top, left = round(y + 0.08 * unit), round(x + 0.08 * unit)
    inner = cv2.resize(coloured, (round(0.69 * unit), round(0.89 * unit)))
    inner = inner[:, : max(0, image.shape[1] - left)]
    image[top : top + inner.shape[0], left : left + inner.shape[1]] = inner


def _paint_room(rng: np.random.Generator, width: int, height: int) -> Scene:
    """Paint a living room: patterned wall, window, bookcase, paintings, perhaps a television."""
    # Wall and floor.
    image = np.zeros((height, width, 3), np.uint8)
    horizon = round(height * rng.uniform(0.66, 0.72))
    wall = _colour(rng, (206, 196, 178), (176, 190, 194), (196, 202, 176), (208, 184, 176))
    image[:horizon] = wall
    period, style = int(rng.integers(14, 30)), rng.integers(3)
    for column in range(0, width, period):
        if style == 0:
            _box(image, column, 0, period // 2, horizon, shade(wall, 0.92))
        elif style == 1:
            for row in range(6 + (column // period % 2) * period // 2, horizon, period):
                cv2.circle(image, (column, row), period // 6, shade(wall, 0.85), -1, cv2.LINE_AA)
        else:
            cv2.line(image, (column, 0), (column, horizon), shade(wall, 0.9), 1)
    _floor(image, rng, horizon, _colour(rng, (150, 108, 70), (124, 98, 78), (168, 150, 128)), True)
    _box(image, 0, horizon - 5, width, 6, (236, 232, 224))
    # Things on the wall, in any order.
    unit = height * 0.13
    left = [width * (0.05 + 0.235 * place) for place in rng.permutation(4)]
    _window(image, rng, left[0], horizon - 4.3 * unit, 2.0 * unit, 2.5 * unit)
    _shelf(image, rng, left[1], horizon - 3.35 * unit, unit)
    for k in range(2):
        _painting(image, rng, left[2] + k * unit, horizon - (3.6 - 0.4 * k) * unit, unit)
    # A television, or a plant on a chest.
    if rng.random() < 0.7:
        x, y = left[3], horizon - 2.2 * unit
        _box(image, x - 0.1 * unit, horizon - 0.9 * unit, 2.2 * unit, 1.0 * unit, (84, 66, 54))
        _box(image, x, y, 2.0 * unit, 1.25 * unit, (18, 18, 20))
        mover = Mover("television", x + 3, y + 3, 2 * unit - 6, 1.25 * unit - 6)
    else:
        _box(image, left[3], horizon - 0.8 * unit, 2.1 * unit, 0.9 * unit, (150, 96, 66))
        mover = _tree(left[3] + 1.0 * unit, horizon - 1.5 * unit, 1.1 * unit)
    return Scene(_textured(image, rng, 0.07, 4), [mover])


def _tree(x: float, y: float, size: float) -> Mover:
    return Mover("leaves", x, y, size, size)


def _paint_park(rng: np.random.Generator, width: int, height: int) -> Scene:
    """Paint a meadow with hills, a path, a fence and trees with moving leaves."""
    image = np.zeros((height, width, 3), np.uint8)
    horizon = round(height * rng.uniform(0.58, 0.66))
    # The sky, a blue gradient with clouds, and the hills in front of it.
    part = np.linspace(0, 1, horizon + 2)[:, None, None]
    blue = (1 - part) * np.array([104, 158, 222]) + part * np.array([206, 224, 240])
    clouds = _noise(rng, horizon + 2, width, 4, 4)[:, :, None]
    clouds = np.clip(clouds * 1.1 - 0.1, 0, 1) * 0.85
    image[: horizon + 2] = blue * (1 - clouds) + 248 * clouds
    for layer, tone in enumerate(((122, 152, 142), (92, 132, 92))):
        ridge = horizon - height * (0.1 - 0.05 * layer) * (1 + _noise(rng, 2, width, 5)[0])
        outline = np.column_stack([np.arange(width), ridge]).round().astype(np.int32)
        outline = np.vstack([outline, [[width, height], [0, height]]]).astype(np.int32)
        cv2.fillPoly(image, [outline], shade(tone, float(rng.uniform(0.9, 1.1))))
    # The meadow and its blades.
    grass = _colour(rng, (104, 148, 62), (122, 150, 74), (140, 146, 78))
    image[horizon:] = grass
    for _ in range(900):
        root_x, root_y = int(rng.integers(width)), int(rng.integers(horizon, height))
        tip = (root_x + int(rng.integers(-2, 3)), root_y - 2 - 9 * (root_y - horizon) // 100)
        blade = shade(grass, float(rng.uniform(0.7, 1.25)))
        cv2.line(image, (root_x, root_y), tip, blade, 1)
    # The path and the fence.
    path_y = horizon + (height - horizon) * rng.uniform(0.35, 0.5)
    path = np.array([[0, path_y], [width, path_y - 8], [width, path_y + 32], [0, path_y + 44]])
    cv2.fillPoly(image, [path.round().astype(np.int32)], _colour(rng, (186, 168, 138)))
    for x in range(0, width, 26):
        _box(image, x, horizon - 12, 4, 26, (140, 108, 78))
    for y in (horizon - 8, horizon + 3):
        _box(image, 0, y, width, 3, (156, 120, 86))
    # Two trees.
    movers = []
    for place in rng.permutation(4)[:2]:
        x, size = width * (0.14 + 0.24 * place), height * rng.uniform(0.2, 0.28)
        foot = horizon + height * 0.05
        trunk = [[x - 7, foot], [x - 4, foot - size], [x + 4, foot - size], [x + 7, foot]]
        cv2.fillPoly(image, [np.array(trunk).round().astype(np.int32)], (92, 68, 48), cv2.LINE_AA)
        movers.append(_tree(x, foot - 1.35 * size, size))
    return Scene(_textured(image, rng, 0.08, 8), movers)


def _paint_street(rng: np.random.Generator, width: int, height: int) -> Scene:
    """Paint a brick front with windows and doors, a pavement and the road."""
    # The front.
    image = np.zeros((height, width, 3), np.uint8)
    horizon = round(height * rng.uniform(0.6, 0.66))
    brick = _colour(rng, (164, 98, 76), (178, 140, 108), (134, 116, 110), (190, 178, 160))
    image[:horizon] = shade(brick, 0.8)
    for row in range(horizon // 7 + 1):
        for left in range(-14 + row % 2 * 7, width, 14):
            _box(image, left, 7 * row, 12, 5, shade(brick, float(rng.uniform(0.88, 1.12))))
    # Windows and doors.
    pitch = width / 5
    for k in range(5):
        x = pitch * (k + 0.2)
        for y in (horizon - 0.62 * height, horizon - 0.36 * height):
            _window(image, rng, x, y, 0.55 * pitch, 0.17 * height)
        if rng.random() < 0.4:
            door = _colour(rng, (60, 84, 70), (110, 40, 36), (50, 58, 96))
            _box(image, x, horizon - 0.3 * height, 0.5 * pitch, 0.3 * height, (222, 214, 200))
            _box(image, x + 4, horizon - 0.28 * height, 0.5 * pitch - 8, 0.28 * height, door)
    # The pavement, the road and perhaps a tree.
    _floor(image, rng, horizon, _colour(rng, (162, 158, 152), (146, 142, 140)), False)
    road = round(height * 0.93)
    image[road:] = (78, 78, 82)
    _box(image, 0, road - 5, width, 5, (196, 192, 186))
    movers = []
    if rng.random() < 0.6:
        x = width * rng.uniform(0.2, 0.8)
        _box(image, x - 4, horizon - 0.3 * height, 8, 0.34 * height, (84, 64, 48))
        movers.append(_tree(x, horizon - 0.42 * height, 0.2 * height))
    return Scene(_textured(image, rng, 0.08, 6), movers)


def _paint_hall(rng: np.random.Generator, width: int, height: int) -> Scene:
    """Paint a sports hall: padded wall, wall bars, high windows, a floor with painted lines."""
    # The wall with pads and windows.
    image = np.zeros((height, width, 3), np.uint8)
    horizon = round(height * rng.uniform(0.62, 0.68))
    image[:horizon] = _colour(rng, (214, 210, 198), (196, 204, 206))
    pad = _colour(rng, (70, 104, 150), (140, 72, 66), (84, 128, 106))
    top = round(horizon - 0.24 * height)
    for k, x in enumerate(np.arange(0, width, width / 9)):
        _box(image, x, top, width / 9 - 2, horizon - top, shade(pad, 0.94 if k % 2 else 1.04))
    for x in np.arange(width * 0.04, width, width / 4):
        _window(image, rng, x, 0.04 * height, width * 0.17, 0.14 * height)
    # The wall bars.
    bars = width * rng.uniform(0.1, 0.6)
    for rung in range(11):
        y = horizon - 0.05 * height * (rung + 0.4)
        _box(image, bars, y, 0.2 * width, 4, (186, 140, 88))
    for k in range(3):
        x, tall = bars + 0.1 * width * k - 3, 0.56 * height
        _box(image, x, horizon - tall, 6, tall, (150, 108, 66))
    # The floor and its lines.
    _floor(image, rng, horizon, _colour(rng, (196, 148, 92), (178, 136, 96)), True)
    for tone, where in (((52, 84, 150), 0.3), ((186, 52, 46), 0.62)):
        y = horizon + (height - horizon) * where
        centre, axes = (round(width * rng.uniform(0.3, 0.7)), round(y)), (width // 4, height // 14)
        cv2.ellipse(image, centre, axes, 0, 0, 360, tone, 2, cv2.LINE_AA)
        cv2.line(image, (0, round(y)), (width, round(y + 6)), tone, 2, cv2.LINE_AA)
    # Perhaps a television.
    movers = []
    if rng.random() < 0.6:
        x, y = width * rng.uniform(0.3, 0.65), 0.22 * height
        _box(image, x - 3, y - 3, 0.2 * width + 6, 0.12 * height + 6, (20, 20, 22))
        movers.append(Mover("television", x, y, 0.2 * width, 0.12 * height))
    return Scene(_textured(image, rng, 0.06, 5), movers)


PAINTERS = {"room": _paint_room, "park": _paint_park, "street": _paint_street, "hall": _paint_hall}
