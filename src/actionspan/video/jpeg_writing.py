"""Frames and flow planes at one size as JPEG pictures, in an HDF5 group that is read in any order.

A group has P positions in order of time:

- `rgb`: the bytes of P JPEG pictures, one after another; picture k is
  `rgb[rgb_offsets[k] : rgb_offsets[k + 1]]`;
- `flow`: likewise P grey JPEG pictures, each the 2L planes x0, y0, x1, y1, … of a position, one
  below the other: (2L · height, width);
- `time`: seconds of each position in its video;
- attributes `height` and `width` of a plane in pixels, `planes` 2L, `bound` (pixels of motion at
  code 255) and `sha256`, which changes with any of the bytes.

Flow vectors keep their length when planes are scaled, as they do where features are computed: only
their grid changes. Codes are as `video.optical_flow` writes them, to within what JPEG alters.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import cv2
import h5py
import numpy as np

from actionspan.arrays import Int64, UInt8
from actionspan.errors import InputError
from actionspan.running.apart import still_working
from actionspan.video.settings import JPEG_LONGEST


class Position(NamedTuple):
    """A place of a clip or a video, at the size of its source."""

    rgb: UInt8  # (h, w, 3)
    planes: UInt8  # (2L, h, w) codes of the flow: x and y in turn
    seconds: float


def write_jpegs(
    group: h5py.Group,
    positions: Iterable[Position],
    *,
    height: int,
    width: int,
    quality: int,
    bound: float,
) -> None:
    """Write positions in order of time into an empty group, in the form above.

    Args:
        group: Gets the datasets and attributes.
        positions: One or more.
        height: Of the stored frames and planes, a multiple of 8: no block of JPEG may hold two
            planes.
        width: Theirs.
        quality: JPEG's, 1 to 100.
        bound: Pixels of motion at code 255.

    Raises:
        InputError: There is no position, or too many planes.
    """
    # compress
    frames, flows, seconds, planes = [], [], [], 0
    for position in positions:
        still_working()
        planes = len(position.planes)
        if planes * height > JPEG_LONGEST:
            raise InputError(
                f"{planes} flow planes of height {height} are too much for one JPEG picture: "
                f"height times planes may be {JPEG_LONGEST}"
            )
        rgb = cv2.cvtColor(scaled(position.rgb, height, width), cv2.COLOR_RGB2BGR)
        frames.append(_jpeg(rgb, quality))
        stack = np.concatenate([scaled(plane, height, width) for plane in position.planes])
        flows.append(_jpeg(stack, quality))
        seconds.append(position.seconds)
    if not seconds:
        raise InputError("there is no frame to store")
    # write
    content = hashlib.sha256(f"{planes} {height} {width} {bound}".encode())
    for name, values in (
        ("rgb", np.concatenate(frames)),
        ("rgb_offsets", _offsets(frames)),
        ("flow", np.concatenate(flows)),
        ("flow_offsets", _offsets(flows)),
        ("time", np.array(seconds, np.float64)),
    ):
        group[name] = values
        content.update(values.tobytes())
    group.attrs.update(height=height, width=width, planes=planes, bound=bound)
    group.attrs["sha256"] = content.hexdigest()


def scaled(image: UInt8, height: int, width: int) -> UInt8:
    """Return an (h, w) or (h, w, 3) image resized to height × width, its values unscaled."""
    if image.shape[:2] == (height, width):
        return image
    shrinks = height <= image.shape[0] and width <= image.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized: Any = cv2.resize(image, (width, height), interpolation=method)
    return np.asarray(resized, np.uint8)


def _jpeg(image: Any, quality: int) -> UInt8:
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done, "the settings keep pictures within what JPEG can hold"
    return np.asarray(data, np.uint8).reshape(-1)


def _offsets(pictures: list[UInt8]) -> Int64:
    return np.cumsum([0, *map(len, pictures)], dtype=np.int64)
