"""Videos whose frames carry their number in the picture, so that tests compare exact frames."""

from collections.abc import Container, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from own_process import in_own_process, needs_own_process

HEIGHT, WIDTH = 64, 128
BITS, SIDE = 12, 16  # 2 rows of 6 squares, black or white


def numbered_picture(number: int, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Draw a grey picture with the bits of `number` as squares."""
    picture = np.full((HEIGHT, WIDTH, 3), 96, np.uint8)
    for bit in range(BITS):
        y, x = SIDE * (1 + bit // 6), SIDE * (1 + bit % 6)
        picture[y : y + SIDE, x : x + SIDE] = 220 if number >> bit & 1 else 30
    rows, columns = np.arange(height) * HEIGHT // height, np.arange(width) * WIDTH // width
    return picture[rows][:, columns]


def read_number(picture: np.ndarray) -> int:
    """Read the number of an RGB or grey picture of any size."""
    height, width = picture.shape[:2]
    number = 0
    for bit in range(BITS):
        y = int((SIDE * (1.5 + bit // 6)) * height / HEIGHT)
        x = int((SIDE * (1.5 + bit % 6)) * width / WIDTH)
        number |= int(picture[y - 1 : y + 2, x - 1 : x + 2].mean() > 125) << bit
    return number


def write_film(
    path: Path,
    pictures: Iterable[np.ndarray],
    *,
    codec: str = "libx264",
    rate: int | Fraction = 25,
    stamps: Sequence[int] | None = None,
    tick: Fraction | None = None,
    pixels: str = "yuv420p",
    options: dict[str, str] | None = None,
    bit_rate: int = 0,
    rotation: int = 0,
    b_frames: int | None = None,
    key_every: int | None = None,
    container: str | None = None,
    container_options: dict[str, str] | None = None,
) -> Path:
    """Encode RGB pictures (H, W, 3) of one size.

    The `stamps` of frames are in ticks of `tick` seconds, or consecutive at the `rate`. A player
    turns the pictures by `rotation` degrees.
    """
    unit = tick or 1 / Fraction(rate)
    with av.open(str(path), "w", format=container, options=container_options or {}) as file:
        stream: Any = file.add_stream(codec, rate=rate, options=options or {})
        stream.pix_fmt, stream.codec_context.time_base = pixels, unit
        if bit_rate:
            stream.bit_rate = bit_rate
        if rotation:
            stream.set_display_rotation(rotation)
        if b_frames is not None:
            stream.codec_context.max_b_frames = b_frames
        if key_every is not None:
            stream.codec_context.gop_size = key_every
        for number, picture in enumerate(pictures):
            if number == 0:
                stream.height, stream.width = picture.shape[:2]
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts, frame.time_base = stamps[number] if stamps else number, unit
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def encode(path: Path, frames: int, *, size: tuple[int, int] = (HEIGHT, WIDTH), **how: Any) -> Path:
    """Encode numbered frames of a height and width; see `write_film`."""
    if needs_own_process(how.get("codec", "")):
        in_own_process(encode, path, frames, size=size, **how)
        return path
    how = {"bit_rate": 0 if "crf" in (how.get("options") or {}) else 4_000_000} | how
    return write_film(path, (numbered_picture(number, *size) for number in range(frames)), **how)


def copy_packets(source: Path, target: Path, keep: Container[int]) -> Path:
    """Copy the packets at `keep`, in decoding order, without encoding them again."""
    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = old.streams.video[0]
        copy = new.add_stream_from_template(stream)
        for place, packet in enumerate(old.demux(stream)):
            if packet.dts is not None and place in keep:
                packet.stream = copy
                new.mux(packet)
    return target


def mostly_still(path: Path) -> Path:
    """Write a video that moves in its first second and its last half one."""
    picture = np.random.default_rng(1).integers(0, 255, (8, 16, 3), np.uint8)
    picture = picture.repeat(8, axis=0).repeat(8, axis=1)
    steps = (min(number, 25) + max(number - 107, 0) for number in range(120))
    return write_film(path, (np.roll(picture, step, axis=1) for step in steps))


def small_mover(path: Path) -> Path:
    """Write a still room of 256 pixels in which a box of 8 pixels moves."""
    room = np.random.default_rng(2).integers(60, 140, (16, 32, 3), np.uint8)
    room = room.repeat(16, axis=0).repeat(16, axis=1)
    pictures = []
    for number in range(96):
        pictures.append(room.copy())
        pictures[-1][100:108, 100 + 2 * number : 108 + 2 * number] = 255
    return write_film(path, pictures, options={"crf": "10"})
