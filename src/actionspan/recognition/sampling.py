"""What of a clip a network sees: augmented in training, the centre where it is evaluated.

Paper 003, section II: a random position and a crop whose width and height are each drawn from 256,
224, 192 and 168 for a height of 256, at a random place, resized to the network's input, and
flipped half of the time, when flow to the right becomes flow to the left. Crops are shares of the
stored height, so that pictures stored at a different size show as much. To evaluate, positions are
spread evenly over the clip and the centre is cut out, 224 of 256.

A sample follows from the seed, the epoch and its place in the epoch: neither ranks nor threads
change it, and both streams of equal seeds see the same.
"""

from typing import NamedTuple

import numpy as np

from actionspan.arrays import UInt8
from actionspan.recognition.clip_store import ClipStore
from actionspan.video.jpeg_reading import Stream
from actionspan.video.views import flipped, square

_FULL = 256  # the height that the paper's sizes belong to
_TRAINING_SIDES = (256, 224, 192, 168)
_CENTRE_SIDE = 224


class Sample(NamedTuple):
    """A part of a position of a clip, in pixels of the store, flipped or not."""

    clip: int
    position: int
    top: int
    left: int
    height: int
    width: int
    flip: bool


def training_sample(store: ClipStore, clip: int, seed: int, epoch: int, place: int) -> Sample:
    """Draw what is seen in training of the clip at a place in the store.

    Seed, epoch and the sample's place in the epoch are 0 or more.
    """
    random = np.random.default_rng((seed, epoch, place))
    position = int(random.integers(store.clips[clip].positions))
    height, width = (_side(store.height, int(side)) for side in random.choice(_TRAINING_SIDES, 2))
    top = int(random.integers(store.height - height + 1))
    left = int(random.integers(store.width - width + 1))
    return Sample(clip, position, top, left, height, width, bool(random.integers(2)))


def evaluation_samples(store: ClipStore, clip: int, count: int) -> list[Sample]:
    """Return the centre of `count` positions spread evenly over a clip.

    The clip is divided into `count` equal parts, and the position in the middle of each is taken:
    the middle of the clip for one part; with fewer positions than parts they repeat.
    """
    side = _side(store.height, _CENTRE_SIDE)
    top, left = (store.height - side) // 2, (store.width - side) // 2
    positions = store.clips[clip].positions
    return [
        Sample(clip, (2 * part + 1) * positions // (2 * count), top, left, side, side, False)
        for part in range(count)
    ]


def read_sample(store: ClipStore, stream: Stream, sample: Sample, size: int) -> UInt8:
    """Return a sample as the network sees it: (size, size, 3), or (size, size, 2L) of flow."""
    picture = store.read(stream, sample.clip, sample.position)
    part = cut(picture, sample, size)
    return flipped(part, stream) if sample.flip else part


def cut(picture: UInt8, sample: Sample, size: int) -> UInt8:
    """Return a sample's part of an (H, W, C) picture, resized to (size, size, C), not flipped."""
    rows = slice(sample.top, sample.top + sample.height)
    return square(picture, rows, slice(sample.left, sample.left + sample.width), size)


def _side(height: int, side: int) -> int:
    """Return `side` of the paper's 256 pixels for a stored height, in pixels."""
    return max(1, round(side * height / _FULL))
