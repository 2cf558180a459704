"""Reading pictures that `jpeg_writing` stored: any position, in any order and thread.

The compressed pictures are read when they are asked for: the operating system keeps in memory what
fits, once for all processes of a machine, and threads need no lock between them. They are not
mapped: pages of a map would count as memory of the process, however much of it there is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import cv2
import h5py
import numpy as np

from actionspan.arrays import Float64, Int64, UInt8
from actionspan.errors import InputError
from actionspan.files.checksums import CheckedFile
from actionspan.files.storage import open_h5

Stream = Literal["rgb", "flow"]
STREAMS: tuple[Stream, ...] = get_args(Stream)
_SHAPE = ("height", "width", "planes", "bound")  # what pictures that are used together share
_END = (0xFF, 0xD9)  # of every JPEG picture


class JpegPictures:
    """The pictures of a group.

    Attributes:
        path: Of its file.
        height, width: Of every picture in pixels.
        planes: 2L, of the flow.
        bound: Pixels of motion at code 255.
        sha256: Changes with any of the bytes.
        count: Positions.
        times: (P,) seconds of each.
        attributes: The group's.
    """

    def __init__(self, path: Path, file: CheckedFile, name: str, group: h5py.Group) -> None:
        """Find the pictures of the group `name` within the bytes of its file.

        Raises:
            KeyError: The group is in another form.
        """
        self.path, self._name = path, name
        self.attributes: dict[str, Any] = dict(group.attrs)
        self.height, self.width = int(group.attrs["height"]), int(group.attrs["width"])
        self.planes, self.bound = int(group.attrs["planes"]), float(group.attrs["bound"])
        self.sha256 = str(group.attrs["sha256"])
        self._file = file
        self._places: dict[Stream, Int64] = {
            stream: _begin(group[stream]) + group[f"{stream}_offsets"][:] for stream in STREAMS
        }
        self.count = len(self._places["rgb"]) - 1
        self.times: Float64 = group["time"][:]

    def channels(self, stream: Stream) -> int:
        """Return the channels of a picture: 3, or 2L of flow."""
        return 3 if stream == "rgb" else self.planes

    def read(self, stream: Stream, position: int) -> UInt8:
        """Return a picture: (height, width, 3), or (height, width, 2L) codes 1 … 255 of the flow.

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
    """Yield the names and pictures of all groups of a file.

    Args:
        path: The file.
        kind: What a group is, for messages: `clip` or `video`.
        made_by: Which commands make the file.
        needed: Further attributes that a group has.

    Raises:
        InputError: The file is missing or in another form.
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
                    f"{path}: not a {kind} store: {name} is no {kind}; make it with {made_by}"
                ) from None
            yield name, pictures


def check_alike(stored: dict[str, JpegPictures], kind: str, also: Sequence[str] = ()) -> None:
    """Compare the shapes of all pictures, and attributes `also`, with those of the first.

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
