"""Writing a clip: its frames and flow planes, scaled to one size and compressed as JPEG.

A clip is one HDF5 group with P positions in order of time:

- `rgb`: the bytes of P JPEG pictures, one after another; picture k is
  `rgb[rgb_offsets[k] : rgb_offsets[k + 1]]`;
- `flow`: likewise P grey JPEG pictures, each the 2L planes x0, y0, x1, y1, … of a position, one
  below the other: (2L · height, width);
- `time`: seconds of each position in its video;
- attributes `label`, `subset`, `height` and `width` of a plane in pixels, `planes` 2L, `bound`
  (pixels of motion at code 255) and `sha256`, which changes with any of the bytes.

Flow vectors keep their length when planes are scaled, as they do where features are computed: only
their grid changes. Codes are as `video.optical_flow` writes them, to within what JPEG alters.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import cv2
import h5py
import numpy as np
from numpy.typing import NDArray

from actionspan.errors import InputError
from actionspan.recognition.clip_settings import JPEG_LONGEST, ClipSettings

Bytes = NDArray[np.uint8]


class Position(NamedTuple):
    """One place of a clip, at the size of its source."""

    rgb: Bytes  # (h, w, 3)
    planes: Bytes  # (2L, h, w) codes of the flow: x and y in turn
    seconds: float


def write_clip(
    group: h5py.Group,
    positions: Iterable[Position],
    settings: ClipSettings,
    *,
    label: str,
    subset: str,
    bound: float,
) -> None:
    """Write one clip, as this module's text says.

    Args:
        group: Empty.
        positions: In order of time.
        settings: The size and the quality.
        label: The clip's class.
        subset: `training`, `validation` or `testing`.
        bound: Pixels of motion at code 255.

    Raises:
        InputError: There is no position, or too many planes.
    """
    frames, flows, seconds, planes = [], [], [], 0
    for position in positions:
        planes = len(position.planes)
        if planes * settings.height > JPEG_LONGEST:
            raise InputError(
                f"{planes} flow planes of height {settings.height} are too much for one JPEG "
                f"picture: height times planes may be {JPEG_LONGEST}"
            )
        rgb = scaled(position.rgb, settings.height, settings.width)
        frames.append(_jpeg(cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), settings.jpeg_quality))
        stack = [scaled(plane, settings.height, settings.width) for plane in position.planes]
        flows.append(_jpeg(np.concatenate(stack), settings.jpeg_quality))
        seconds.append(position.seconds)
    if not seconds:
        raise InputError("no frame lies in the clip")
    content = hashlib.sha256(f"{planes} {settings.height} {settings.width} {bound}".encode())
    for name, values in (
        ("rgb", np.concatenate(frames)),
        ("rgb_offsets", _offsets(frames)),
        ("flow", np.concatenate(flows)),
        ("flow_offsets", _offsets(flows)),
        ("time", np.array(seconds, np.float64)),
    ):
        group[name] = values
        content.update(values.tobytes())
    group.attrs["label"] = label
    group.attrs["subset"] = subset
    group.attrs["height"] = settings.height
    group.attrs["width"] = settings.width
    group.attrs["planes"] = planes
    group.attrs["bound"] = bound
    group.attrs["sha256"] = content.hexdigest()


def scaled(image: Bytes, height: int, width: int) -> Bytes:
    """Return an (h, w) or (h, w, 3) image resized to height × width, its values unscaled."""
    if image.shape[:2] == (height, width):
        return image
    shrinks = height <= image.shape[0] and width <= image.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized: Any = cv2.resize(image, (width, height), interpolation=method)
    return np.asarray(resized, np.uint8)


def _jpeg(image: Any, quality: int) -> Bytes:
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done, "the settings keep pictures within what JPEG can hold"
    return np.asarray(data, np.uint8).reshape(-1)


def _offsets(pictures: list[Bytes]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, pictures)], dtype=np.int64)
