"""Reading stored snippets: pictures of any rows of any video, decoded when they are asked for.

Nothing decoded is kept: what the operating system keeps in memory are the compressed pictures.
OpenCV decodes and scales without holding Python's lock, so readers work side by side.

All snippets of a video show the same part of its pictures, and are mirrored or not alike: a box
that moved from snippet to snippet would be motion that the video does not have. It is given in
fractions, so that it is the same of RGB and of flow, at any size.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float64, UInt8
from actionspan.errors import InputError
from actionspan.files.storage import digest
from actionspan.video.jpegs import (
    STREAMS,
    JpegPictures,
    Stream,
    check_alike,
    flipped,
    read_pictures,
    square,
)

_LEAST_SIDE = 0.8  # of each side of the picture
_DRAW = 4004  # sets these draws apart from others of the same seed, epoch and place
_MADE_BY = "`actionspan finetune store`"
_NEEDED = ("duration_seconds", "snippet_frames", "snippets")


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """A box of the picture, in fractions of its height and width, mirrored or not.

    Raises:
        ValueError: The box is empty or not within the picture.
    """

    top: float = 0.0
    left: float = 0.0
    height: float = 1.0
    width: float = 1.0
    flip: bool = False

    def __post_init__(self) -> None:
        for first, length in ((self.top, self.height), (self.left, self.width)):
            if not (0 <= first < 1 and 0 < length <= 1 and first + length <= 1 + 1e-9):
                raise ValueError(f"{self}: a box within 0 … 1 of each side")

    def box(self, height: int, width: int) -> tuple[slice, slice]:
        """Return the rows and columns of a picture of so many pixels; at least one of each."""
        return _pixels(self.top, self.height, height), _pixels(self.left, self.width, width)


NONE = Augmentation()
"""The whole picture as it is."""


def draw(seed: int, epoch: int, place: int) -> Augmentation:
    """Draw what an epoch shows of a video: 0.8 to 1 of each side, mirrored half of the time.

    `place` is the video's in the order of the epoch: neither ranks nor threads change the draw.
    """
    random = np.random.default_rng((seed, epoch, place, _DRAW))
    height, width = random.uniform(_LEAST_SIDE, 1.0, 2)
    return Augmentation(
        top=float(random.uniform(0.0, 1.0 - height)),
        left=float(random.uniform(0.0, 1.0 - width)),
        height=float(height),
        width=float(width),
        flip=bool(random.integers(2)),
    )


def _pixels(first: float, length: float, size: int) -> slice:
    begin = min(round(first * size), size - 1)
    return slice(begin, min(max(begin + 1, round((first + length) * size)), size))


class SnippetStore:
    """The videos of one or more shards that `finetune store` wrote.

    Attributes:
        videos: Their ids, sorted.
        seconds: The duration of each.
        height, width: Of every stored picture in pixels.
        planes: 2L, planes of flow of a snippet.
        bound: Pixels of motion at code 255.
        snippet_frames: Frames of a snippet.
        fingerprint: Changes with any picture, time or duration, whatever the order of the files.
    """

    def __init__(self, paths: Sequence[Path], readers: int = 1, stride: int = 1) -> None:
        """Open the stores; `readers` threads decode every `stride`-th snippet of a video.

        Raises:
            InputError: A file is missing or is no snippet store, a video is in two of them, they
                were made with different settings, or there is no video at all.
            ValueError: There is no reader, or no stride.
        """
        for name, number in (("readers", readers), ("stride", stride)):
            if number < 1:
                raise ValueError(f"{name} {number}: at least 1")
        self._stride = stride
        stored: dict[str, JpegPictures] = {}
        for path in paths:
            found = dict(read_pictures(path, "video", _MADE_BY, needed=_NEEDED))
            for video, pictures in found.items():
                if video in stored:
                    raise InputError(f"{path}: video {video} is in {stored[video].path} too")
                if not len(pictures.times) == pictures.count == pictures.attributes["snippets"]:
                    raise InputError(
                        f"{path}: video {video} has {len(pictures.times)} times for "
                        f"{pictures.count} pictures; delete the file and run again"
                    )
                seconds = float(pictures.attributes["duration_seconds"])
                rising = np.isfinite(pictures.times).all() and (np.diff(pictures.times) > 0).all()
                if not (rising and pictures.count and 0 < seconds < np.inf):
                    raise InputError(
                        f"{path}: video {video}: its times do not rise, or its duration "
                        f"{seconds:g} s is not above 0; delete the file and run again"
                    )
                stored[video] = pictures
        if not stored:
            raise InputError(f"{', '.join(map(str, paths)) or 'no file'}: no video is in there")
        self._stored = dict(sorted(stored.items()))
        check_alike(self._stored, "video", ("snippet_frames",))
        self.videos = list(self._stored)
        first = self._stored[self.videos[0]]
        self.height, self.width = first.height, first.width
        self.planes, self.bound = first.planes, first.bound
        self.snippet_frames = int(first.attributes["snippet_frames"])
        self.seconds = {
            video: float(pictures.attributes["duration_seconds"])
            for video, pictures in self._stored.items()
        }
        self.fingerprint = digest(
            [[video, self._stored[video].sha256, self.seconds[video]] for video in self.videos]
        )
        self._pool = ThreadPoolExecutor(readers, "reader") if readers > 1 else None

    def count(self, video: str) -> int:
        """Return how many snippets a video has."""
        return -(-self._of(video).count // self._stride)

    def times(self, video: str) -> Float64:
        """Return (T,) the seconds of a video's snippets."""
        return self._of(video).times[:: self._stride]

    def channels(self, stream: Stream) -> int:
        """Return the channels of a picture: 3, or 2L of flow."""
        return 3 if stream == "rgb" else self.planes

    def read(self, video: str, rows: Sequence[int], stream: Stream) -> UInt8:
        """Return the stored pictures of some snippets, in the order of `rows`.

        Returns:
            (n, height, width, 3) bytes, or (n, height, width, 2L) codes 1 … 255 of the flow.

        Raises:
            InputError: A picture is damaged, or there is no such video.
            ValueError: The video has no such row.
        """
        pictures = self._of(video)
        out = np.empty((len(rows), self.height, self.width, self.channels(stream)), np.uint8)

        def fill(place: int, row: int) -> None:
            out[place] = pictures.read(stream, row)

        self._each(fill, self._places(rows, video))
        return out

    def pictures(
        self,
        video: str,
        rows: Sequence[int],
        streams: Sequence[Stream],
        size: int,
        augmentation: Augmentation = NONE,
    ) -> tuple[UInt8, ...]:
        """Return squares of some snippets as a network sees them, in the order of `rows`.

        Returns:
            For each stream (n, size, size, 3 or 2L) bytes: the box of the augmentation, resized.

        Raises:
            InputError: A picture is damaged, or there is no such video.
            ValueError: The video has no such row, or there is no such stream.
        """
        for stream in streams:
            if stream not in STREAMS:
                raise ValueError(f"stream {stream!r}: one of {', '.join(STREAMS)}")
        pictures, checked = self._of(video), self._places(rows, video)
        box = augmentation.box(self.height, self.width)
        out = tuple(
            np.empty((len(rows), size, size, self.channels(stream)), np.uint8) for stream in streams
        )

        def fill(place: int, row: int) -> None:
            for stream, squares in zip(streams, out, strict=True):
                part = square(pictures.read(stream, row), *box, size)
                squares[place] = flipped(part, stream) if augmentation.flip else part

        self._each(fill, checked)
        return out

    def _of(self, video: str) -> JpegPictures:
        if video not in self._stored:
            raise InputError(f"video {video}: not in the snippet store; run {_MADE_BY} for it")
        return self._stored[video]

    def _places(self, rows: Sequence[int], video: str) -> list[int]:
        """Return the positions of rows among a video's stored pictures."""
        count = self.count(video)
        for row in rows:
            if not 0 <= row < count:
                raise ValueError(f"row {row} of video {video}: it has {count} snippets, from 0")
        return [row * self._stride for row in rows]

    def _each(self, fill: Callable[[int, int], None], rows: Sequence[int]) -> None:
        """Call `fill(place, row)` for all rows, on the readers' threads."""
        cv2.setNumThreads(1)  # OpenCV's own threads would be in the way of these and of torch's
        done: Iterator[Any]
        if self._pool is None or len(rows) < 2:
            done = map(fill, range(len(rows)), rows)
        else:
            done = self._pool.map(fill, range(len(rows)), rows)
        for _ in done:
            pass


class SnippetFrames:
    """A video's snippets as a sequence that encoders take row by row, decoded on demand.

    Its squares have `input_size` pixels a side; the augmentation is one for the whole video.
    """

    def __init__(
        self,
        store: SnippetStore,
        video: str,
        streams: Sequence[Stream],
        input_size: int,
        augmentation: Augmentation = NONE,
    ) -> None:
        self.store, self.video, self.streams = store, video, tuple(streams)
        self.input_size, self.augmentation = input_size, augmentation

    def __len__(self) -> int:
        return self.store.count(self.video)

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the pictures of rows (n,) int64: (n, size, size, C) uint8 for each stream."""
        pictures = self.store.pictures(
            self.video, rows.tolist(), self.streams, self.input_size, self.augmentation
        )
        return tuple(torch.from_numpy(each) for each in pictures)
