"""The batches of an epoch: drawn, decoded and cut, on one thread or several.

OpenCV decodes and scales without holding Python's lock, so readers work side by side, and next to
the network. What a batch holds depends on neither their number nor that of the ranks.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import cv2
import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Int64, UInt8
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.sampling import Sample, read_sample, training_sample
from actionspan.recognition.settings import RecognitionSettings
from actionspan.video.jpeg_reading import Stream


def epoch_steps(clips: int, batch_size: int) -> list[slice]:
    """Return the places in an epoch's order of each step's clips.

    Steps are as few as the batch size allows, and as equal as can be: a last step of few clips
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
    """Yield pictures and labels of batches of samples; `readers` threads decode.

    Yields:
        (B, size, size, C) bytes, C being 3 or 2L, and (B,) labels.
    """
    if readers < 1:
        raise ValueError(f"readers is {readers}: at least 1")
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
    read = clip_batches(store, stream, samples, settings.input_size, readers)
    for step, places, (pictures, labels) in zip(steps, parts, read, strict=True):
        ends = np.cumsum([len(part) for part in places])[:-1].tolist()
        images = torch.from_numpy(pictures).tensor_split(ends)
        targets = torch.from_numpy(labels).tensor_split(ends)
        yield step.stop - step.start, list(zip(images, targets, strict=True))
