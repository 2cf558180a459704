"""Reading stored snippets: images of any rows of any video, decoded when they are asked for.

Decoded images are not kept; the operating system caches the compressed ones.
OpenCV decodes and scales without holding Python's lock, so readers work side by side.

All snippets of a video show the same part of its images, and are mirrored or not alike: a box
that moved from snippet to snippet would be motion that the video does not have. It is given in
fractions, so that it is the same of RGB and of flow, at any size.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float64, UInt8
from actionspan.errors import InputError
from actionspan.recognition.clip_store import read_stores
from actionspan.storage.writing import digest
from actionspan.video.jpegs import STREAMS, JpegPictures, Stream, check_alike, flipped, square

_LEAST_SIDE = 0.8  # of each side of the image
_DRAW = 4004  # separates these draws from others of the same seed, epoch and place
_MADE_BY = "`actionspan finetune store`"


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """A box of the image, in fractions of its height and width, mirrored or not.

    Raises:
        ValueError: The box is empty or not within the image.
    """

    top: float = 0.0
    left: float = 0.0
    height: float = 1.0
    width: float = 1.0
    flip: bool = False

    def __post_init__(self) -> None:
        for first, length in ((self.top, self.height), (self.left, self.width)):
            if not (0 <= first < 1 and 0 < length <= 1 and first + length <= 1 + 1e-9):
                raise ValueError(f"{self} must be a box within 0 … 1 of each side")

    def box(self, height: int, width: int) -> tuple[slice, slice]:
        """Return the rows and columns of an image of `height` × `width` pixels, one at least."""
        return _pixels(self.top, self.height, height), _pixels(self.left, self.width, width)


NONE = Augmentation()
"""The whole image as it is."""


def draw(seed: int, epoch: int, place: int) -> Augmentation:
    """Draw the part of a video that an epoch shows: 0.8 to 1 of each side.

    It is mirrored half of the time. `place` is the video's in the order of the epoch, so neither
    ranks nor threads change the draw.
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
        height, width: Of every stored image in pixels.
        planes: 2L, planes of flow of a snippet.
        fingerprint: Changes with any image, time or duration, whatever the order of the files.
    """

    def __init__(self, paths: Sequence[Path], readers: int = 1, stride: int = 1) -> None:
        """Open the stores; `readers` threads decode every `stride`-th snippet of a video.

        Raises:
            InputError: A file is missing or is not a snippet store, a video is in two of them, they
                were made with different settings, or hold no video.
            ValueError: The number of readers or the stride is 0.
        """
        for name, number in (("readers", readers), ("stride", stride)):
            if number < 1:
                raise ValueError(f"{name} is {number}; it must be at least 1")
        self._stride = stride
        needed = ("duration_seconds", "snippet_frames", "snippets")
        self._stored = read_stores(paths, "video", _MADE_BY, needed)
        self.videos = list(self._stored)
        self.seconds: dict[str, float] = {}
        for video, pictures in self._stored.items():
            times, seconds = pictures.times, float(pictures.attributes["duration_seconds"])
            if not len(times) == pictures.count == pictures.attributes["snippets"]:
                raise InputError(
                    f"{pictures.path}: video {video} has {len(times)} times for "
                    f"{pictures.count} images; delete the file and run again"
                )
            rising = np.isfinite(times).all() and (np.diff(times) > 0).all()
            if not (rising and pictures.count and 0 < seconds < np.inf):
                raise InputError(
                    f"{pictures.path}: video {video}: its times do not rise, or its duration "
                    f"{seconds:g} s is not above 0; delete the file and run again"
                )
            self.seconds[video] = seconds
        check_alike(self._stored, "video", ("snippet_frames",))
        first = self._stored[self.videos[0]]
        self.height, self.width, self.planes = first.height, first.width, first.planes
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

    def read(self, video: str, rows: Sequence[int], stream: Stream) -> UInt8:
        """Return the stored images of some snippets, in the order of `rows`.

        They are (n, height, width, 3) bytes, or (n, height, width, 2L) codes 1 … 255 of the flow.

        Raises:
            InputError: An image is damaged, or the video is missing.
            ValueError: The video has no such row.
        """
        pictures = self._of(video)
        out = np.empty((len(rows), self.height, self.width, pictures.channels(stream)), np.uint8)

        def fill(place: int, row: int) -> None:
            out[place] = pictures.read(stream, row)

        self._fill(fill, rows, video)
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

        They are, for each stream, (n, size, size, 3 or 2L) bytes: the augmentation's box, resized.

        Raises:
            InputError: An image is damaged, or the video is missing.
            ValueError: The video has no such row, or the stream is missing.
        """
        for stream in streams:
            if stream not in STREAMS:
                raise ValueError(f"stream is {stream!r}; it must be one of {', '.join(STREAMS)}")
        pictures, box = self._of(video), augmentation.box(self.height, self.width)
        shape = (len(rows), size, size)
        out = tuple(np.empty((*shape, pictures.channels(each)), np.uint8) for each in streams)

        def fill(place: int, row: int) -> None:
            for stream, squares in zip(streams, out, strict=True):
                part = square(pictures.read(stream, row), *box, size)
                squares[place] = flipped(part, stream) if augmentation.flip else part

        self._fill(fill, rows, video)
        return out

    def _of(self, video: str) -> JpegPictures:
        if video not in self._stored:
            raise InputError(f"video {video}: not in the snippet store; run {_MADE_BY} for it")
        return self._stored[video]

    def _fill(self, fill: Callable[[int, int], None], rows: Sequence[int], video: str) -> None:
        """Call `fill(place, position)` for the stored positions of rows, on the readers."""
        count = self.count(video)
        for row in rows:
            if not 0 <= row < count:
                raise ValueError(f"row {row} of video {video}: it has {count} snippets, from 0")
        positions = [row * self._stride for row in rows]
        cv2.setNumThreads(1)  # OpenCV's own threads would be in the way of these and of torch's
        run = map if self._pool is None or len(rows) < 2 else self._pool.map
        for _ in run(fill, range(len(rows)), positions):
            pass


@dataclass(frozen=True)
class SnippetFrames:
    """A video's snippets as a sequence that encoders take row by row, decoded on demand.

    Its squares have `input_size` pixels a side; the augmentation is one for the whole video.
    """

    store: SnippetStore
    video: str
    streams: Sequence[Stream]
    input_size: int
    augmentation: Augmentation = NONE

    def __len__(self) -> int:
        return self.store.count(self.video)

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the images of rows (n,) int64: (n, size, size, C) uint8 for each stream."""
        pictures = self.store.pictures(
            self.video, rows.tolist(), self.streams, self.input_size, self.augmentation
        )
        return tuple(torch.from_numpy(each) for each in pictures)
