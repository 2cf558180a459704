"""Samples of clips for a network: augmented in training, the centre in evaluation.

Paper 003, section II: a random position and a crop with width and height each drawn from 256, 224,
192 and 168 for a height of 256, at a random place, resized to the network's input, and
flipped half of the time, when flow to the right becomes flow to the left. Crops are shares of the
stored height, so that images stored at a different size show as much. To evaluate, positions are
spread evenly over the clip and the centre is cut out, 224 of 256.

A sample follows from the seed, the epoch and its place in the epoch: neither ranks nor threads
change it, and both streams of equal seeds see the same. OpenCV decodes and scales without holding
Python's lock, so readers work side by side, and next to the network.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Int64, UInt8
from actionspan.parallel.member import share
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.settings import RecognitionSettings
from actionspan.video.jpegs import Stream, flipped, square

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
    """Draw a training sample of a clip; `place` is its place in the epoch."""
    random = np.random.default_rng((seed, epoch, place))
    position = int(random.integers(store.clips[clip].positions))
    height, width = (_side(store.height, int(side)) for side in random.choice(_TRAINING_SIDES, 2))
    top = int(random.integers(store.height - height + 1))
    left = int(random.integers(store.width - width + 1))
    return Sample(clip, position, top, left, height, width, bool(random.integers(2)))


def evaluation_samples(store: ClipStore, clip: int, count: int) -> list[Sample]:
    """Return the centre of `count` positions spread evenly over a clip.

    The position in the middle of each of `count` equal parts is taken; with fewer positions than
    parts they repeat.
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
    """Return a sample's part of an (H, W, C) image, resized to (size, size, C), not flipped."""
    rows = slice(sample.top, sample.top + sample.height)
    return square(picture, rows, slice(sample.left, sample.left + sample.width), size)


def _side(height: int, side: int) -> int:
    """Return `side` of the paper's 256 pixels for a stored height, in pixels."""
    return max(1, round(side * height / _FULL))


def epoch_steps(clips: int, batch_size: int) -> list[slice]:
    """Return the places in an epoch's order of each step's clips.

    Steps are as few as the batch size allows, and as equal as possible: a last step of few clips
    would weigh as much as the others.
    """
    count = -(-clips // batch_size)
    bounds = [clips * step // max(1, count) for step in range(count + 1)]
    return [slice(first, last) for first, last in itertools.pairwise(bounds)]


def clip_batches(
    store: ClipStore,
    stream: Stream,
    batches: Iterable[Sequence[Sample]],
    size: int,
    readers: int = 1,
) -> Iterator[tuple[UInt8, Int64]]:
    """Yield images and labels of batches of samples; `readers` threads decode.

    Yields:
        (B, size, size, C) bytes, C being 3 or 2L, and (B,) labels.
    """
    if readers < 1:
        raise ValueError(f"readers is {readers}; it must be at least 1")
    cv2.setNumThreads(1)  # OpenCV's own threads would be in the way of these and of torch's
    read = partial(read_sample, store, stream, size=size)
    with ThreadPoolExecutor(readers, thread_name_prefix="reader") as pool:
        for samples in batches:
            labels = [store.clips[sample.clip].label for sample in samples]
            pictures = np.empty((len(samples), size, size, store.channels[stream]), np.uint8)
            for place, picture in enumerate(pool.map(read, samples)):
                pictures[place] = picture
            yield pictures, np.array(labels, np.int64)


def training_batches(
    store: ClipStore,
    stream: Stream,
    order: Int64,
    steps: Sequence[slice],
    learners: Sequence[int | None],
    count: int,
    settings: RecognitionSettings,
    epoch: int,
    readers: int = 1,
) -> Iterator[tuple[int, list[tuple[Tensor, Tensor]]]]:
    """Yield the samples of each of this process's learners in each step of an epoch.

    `order` has the (N,) places of the training clips in the store, `steps` which places in that
    order the steps of all `count` learners together take; `learners` are the numbers of those here,
    of which None has no clips. `readers` threads decode.

    Yields:
        The number of clips of the step, and for each learner here (S, size, size, C) bytes and
        (S,) labels; S may be 0.
    """
    parts = [
        [range(len(order))[step][share(step.stop - step.start, each, count)] for each in learners]
        for step in steps
    ]
    draw = partial(training_sample, store, seed=settings.seed, epoch=epoch)
    samples = (
        [draw(int(order[place]), place=place) for part in step for place in part] for step in parts
    )
    read = clip_batches(store, stream, samples, settings.input_size, readers)
    for step, places, (pictures, labels) in zip(steps, parts, read, strict=True):
        lengths = [len(part) for part in places]
        images = torch.split(torch.from_numpy(pictures), lengths)
        targets = torch.split(torch.from_numpy(labels), lengths)
        yield step.stop - step.start, list(zip(images, targets, strict=True))
