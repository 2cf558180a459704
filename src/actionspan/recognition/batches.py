"""The batches of an epoch: drawn, decoded and cut ahead of time, on one thread or several.

OpenCV decodes and scales without holding Python's lock, so readers work side by side, beside the
network too. What a batch holds depends on neither their number nor the ranks'.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from actionspan.recognition.clip_store import ClipStore, Stream
from actionspan.recognition.sampling import Sample, read_sample, training_sample
from actionspan.recognition.settings import RecognitionSettings
from actionspan.running.prefetch import prefetched

Bytes = NDArray[np.uint8]


def epoch_steps(clips: int, batch_size: int) -> list[slice]:
    """Return the places in an epoch's order of each step's clips.

    Steps are as few as the batch size allows, and as equal as can be: a last one of few clips would
    weigh as much as the others.
    """
    count = -(-clips // batch_size)
    bounds = [clips * step // max(1, count) for step in range(count + 1)]
    return [slice(first, last) for first, last in itertools.pairwise(bounds)]


def clip_batches(
    store: ClipStore,
    stream: Stream,
    batches: Iterator[Sequence[Sample]],
    size: int,
    readers: int = 1,
) -> Iterator[tuple[Bytes, NDArray[np.int64]]]:
    """Yield the pictures and labels of batches of samples, made ahead of time.

    Args:
        store: The clips.
        stream: Which of their pictures.
        batches: The samples of each batch; used by another thread.
        size: Side of the square the network sees in pixels.
        readers: Threads that decode.

    Yields:
        (B, size, size, C) bytes, C being 3 or 2L, and (B,) labels.
    """
    with closing(prefetched(_read_batches(store, stream, batches, size, readers))) as ready:
        yield from ready


def _read_batches(
    store: ClipStore,
    stream: Stream,
    batches: Iterator[Sequence[Sample]],
    size: int,
    readers: int,
) -> Iterator[tuple[Bytes, NDArray[np.int64]]]:
    read = partial(read_sample, store, stream, size=size)
    with _reading(readers) as pool:
        for samples in batches:
            labels = [store.clips[sample.clip].label for sample in samples]
            pictures = np.empty((len(samples), size, size, store.channels[stream]), np.uint8)
            for place, picture in enumerate(pool.map(read, samples)):
                pictures[place] = picture
            yield pictures, np.array(labels, np.int64)


def training_batches(
    store: ClipStore,
    stream: Stream,
    order: NDArray[np.int64],
    steps: Sequence[slice],
    shares: Callable[[int], Sequence[slice]],
    settings: RecognitionSettings,
    epoch: int,
    readers: int = 1,
) -> Iterator[tuple[int, list[tuple[Tensor, Tensor]]]]:
    """Yield what each of this process's learners sees in each step of an epoch.

    Args:
        store: The clips.
        stream: Which of their pictures.
        order: (N,) places of the training clips in the store, in the order of the epoch.
        steps: Which places in that order the steps of all learners together take.
        shares: For the number of clips of a step, which of them each learner here has.
        settings: Input size and seed.
        epoch: Its number.
        readers: Threads that decode.

    Yields:
        The number of clips of the step, and for each learner here (S, size, size, C) bytes and
        (S,) labels; S may be 0.
    """
    parts = [
        [range(len(order))[step][share] for share in shares(step.stop - step.start)]
        for step in steps
    ]
    draw = partial(training_sample, store, seed=settings.seed, epoch=epoch)
    samples = (
        [draw(int(order[place]), place=place) for part in step for place in part] for step in parts
    )
    read = _read_batches(store, stream, samples, settings.input_size, readers)
    for step, places, (pictures, labels) in zip(steps, parts, read, strict=True):
        ends = np.cumsum([len(part) for part in places])[:-1].tolist()
        images = torch.from_numpy(pictures).tensor_split(ends)
        targets = torch.from_numpy(labels).tensor_split(ends)
        yield step.stop - step.start, list(zip(images, targets, strict=True))


def _reading(readers: int) -> ThreadPoolExecutor:
    if readers < 1:
        raise ValueError(f"readers is {readers}: at least 1")
    cv2.setNumThreads(1)  # threads of its own would stand in the way of these and of torch's
    return ThreadPoolExecutor(readers, thread_name_prefix="reader")
