"""Frames and flow planes at one size as JPEG images, in an HDF5 group that is read in any order.

A group has P positions in order of time:

- `rgb`: the bytes of P JPEG images, one after another; image k is
  `rgb[rgb_offsets[k] : rgb_offsets[k + 1]]`;
- `flow`: likewise P grey JPEG images, each the 2L planes x0, y0, x1, y1, … of a position, one
  below the other: (2L · height, width);
- `time`: seconds of each position in its video;
- attributes `height` and `width` of a plane in pixels, `planes` 2L, `bound` (pixels of motion at
  code 255) and `sha256`, which changes with any of the bytes.

Flow vectors keep their length when planes are scaled, as they do where features are computed: only
their grid changes. Codes are as `video.optical_flow` writes them, to within what JPEG alters.

Any position is read in any order and thread. The compressed images are read when they are asked
for: the operating system keeps in memory what fits, once for all processes of a machine, and
threads need no lock between them. They are not mapped: pages of a map would count as memory of the
process, however much of it there is.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import cv2
import h5py
import numpy as np

from actionspan.arrays import Float64, Int64, UInt8
from actionspan.errors import InputError
from actionspan.jobs.apart import still_working
from actionspan.storage.checksums import CheckedFile
from actionspan.storage.writing import open_h5
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
    """Write one or more positions in order of time into an empty group, in the format above.

    The `height` of the stored frames and planes is a multiple of 8: no block of JPEG may hold two
    planes. `quality` is JPEG's, 1 to 100, and `bound` the pixels of motion at code 255.

    Raises:
        InputError: No position is given, or too many planes are.
    """
    # compress
    frames, flows, seconds, planes = [], [], [], 0
    for position in positions:
        still_working()
        planes = len(position.planes)
        if planes * height > JPEG_LONGEST:
            raise InputError(
                f"{planes} flow planes of height {height} are too much for one JPEG image: "
                f"height times planes may be {JPEG_LONGEST}"
            )
        frames.append(jpeg_of(scaled(position.rgb, height, width), quality))
        stack = np.concatenate([scaled(plane, height, width) for plane in position.planes])
        flows.append(jpeg_of(stack, quality))
        seconds.append(position.seconds)
    if not seconds:
        raise InputError("no frames to store")
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


def jpeg_of(picture: UInt8, quality: int) -> UInt8:
    """Return the bytes of a grey (h, w) or RGB (h, w, 3) image as JPEG."""
    image = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done, "images are within what JPEG can hold"
    return np.asarray(data, np.uint8).reshape(-1)


def _offsets(pictures: list[UInt8]) -> Int64:
    return np.cumsum([0, *map(len, pictures)], dtype=np.int64)


Stream = Literal["rgb", "flow"]
STREAMS: tuple[Stream, ...] = get_args(Stream)
_SHAPE = ("height", "width", "planes", "bound")  # what images that are used together share
_END = (0xFF, 0xD9)  # of every JPEG image


class JpegPictures:
    """The images of a group, with the group's `attributes`."""

    def __init__(self, path: Path, file: CheckedFile, name: str, group: h5py.Group) -> None:
        """Find the images of the group `name` within the bytes of its file.

        Raises:
            KeyError: The group has another format.
        """
        self.path, self._name, self._file = path, name, file
        self.attributes: dict[str, Any] = dict(group.attrs)
        self.height, self.width = int(group.attrs["height"]), int(group.attrs["width"])
        self.planes, self.bound = int(group.attrs["planes"]), float(group.attrs["bound"])
        self.sha256 = str(group.attrs["sha256"])
        self._places: dict[Stream, Int64] = {
            stream: _begin(group[stream]) + group[f"{stream}_offsets"][:] for stream in STREAMS
        }
        self.count = len(self._places["rgb"]) - 1  # positions
        self.times: Float64 = group["time"][:]  # (P,) seconds of each

    def channels(self, stream: Stream) -> int:
        """Return the channels of an image: 3, or 2L of flow."""
        return 3 if stream == "rgb" else self.planes

    def read(self, stream: Stream, position: int) -> UInt8:
        """Return an image: (height, width, 3), or (height, width, 2L) codes 1 … 255 of the flow.

        Flow is a view of planes that follow each other in memory.

        Raises:
            InputError: The file is damaged.
        """
        begin, end = self._places[stream][position : position + 2].tolist()
        data = np.frombuffer(self._file.read(begin, end - begin), np.uint8)
        planes = 1 if stream == "rgb" else self.planes
        image: Any = None
        if tuple(data[-2:]) == _END:  # else cut off: OpenCV would return what there is
            flags = cv2.IMREAD_COLOR_RGB if stream == "rgb" else cv2.IMREAD_GRAYSCALE
            image = cv2.imdecode(data, flags)
        if image is None or image.shape[:2] != (planes * self.height, self.width):
            raise InputError(
                f"{self.path}: {stream} of {self._name} is damaged at position {position}; "
                "delete the file and run again"
            )
        if stream == "rgb":
            return np.asarray(image, np.uint8)
        np.maximum(image, 1, out=image)  # JPEG may turn 1 into 0, which codes nothing
        stack: UInt8 = image.reshape(planes, self.height, self.width).transpose(1, 2, 0)
        return stack


def read_pictures(
    path: Path, kind: str, made_by: str, *, needed: Sequence[str]
) -> Iterator[tuple[str, JpegPictures]]:
    """Yield the names and images of all groups of a file, which have `needed` attributes too.

    In messages, `kind` is a group's type, `clip` or `video`, and `made_by` names the commands that
    make the file.

    Raises:
        InputError: The file is missing or has another format.
    """
    with open_h5(path) as file:
        opened = CheckedFile(path)
        for name, group in file.items():
            try:
                pictures = JpegPictures(path, opened, f"{kind} {name}", group)
                for key in needed:
                    group.attrs[key]
            except (AttributeError, KeyError):
                raise InputError(
                    f"{path}: not a {kind} store: {name} is not a {kind}; make it with {made_by}"
                ) from None
            yield name, pictures


def check_alike(stored: dict[str, JpegPictures], kind: str, also: Sequence[str] = ()) -> None:
    """Compare the shapes of all images, and attributes `also`, with the first image's.

    Raises:
        InputError: They were made with different settings.
    """
    first, shape = next(iter(stored.items()))
    for name, pictures in stored.items():
        for key in (*_SHAPE, *also):
            own, wanted = pictures.attributes[key], shape.attributes[key]
            if own != wanted:
                raise InputError(
                    f"{pictures.path}: {kind} {name} has {key} {own}, but {first} of {shape.path} "
                    f"has {wanted}; make all with the same settings"
                )


def _begin(dataset: h5py.Dataset) -> int:
    """Return where the bytes of an uncompressed dataset begin in its file."""
    begin = dataset.id.get_offset()
    if begin is None or dataset.dtype != np.uint8:
        raise KeyError("not plain bytes")
    return int(begin)


_DIRECT = 4  # channels that OpenCV resizes at once, with the same bits as one by one


def square(picture: UInt8, rows: slice, columns: slice, size: int) -> UInt8:
    """Return a part of an (H, W, C) image, resized to (size, size, C)."""
    part = picture[rows, columns]
    if part.shape[:2] == (size, size):
        return np.ascontiguousarray(part)
    method = cv2.INTER_AREA if min(part.shape[:2]) > size else cv2.INTER_LINEAR
    resize = partial(cv2.resize, dsize=(size, size), interpolation=method)
    if part.shape[2] <= _DIRECT and part.strides[2] == 1:
        resized: Any = resize(part)
    else:  # plane by plane: where planes follow each other in memory this copies none
        resized = cv2.merge([resize(plane) for plane in np.moveaxis(part, 2, 0)])
    return np.asarray(resized, np.uint8).reshape(size, size, -1)


def flipped(picture: UInt8, stream: Literal["rgb", "flow"]) -> UInt8:
    """Return an (H, W, C) image mirrored from left to right.

    The horizontal planes of flow, the even ones, change their sign: code c becomes 256 − c.
    """
    mirrored = np.ascontiguousarray(picture[:, ::-1])
    if stream == "flow":  # bytes wrap: −c is 256 − c for c from 1 to 255
        mirrored[:, :, ::2] = np.negative(mirrored[:, :, ::2])
    return mirrored
