"""Class probabilities of clips: the mean over positions spread evenly over each."""

import contextlib
import itertools
from functools import partial

import numpy as np
import torch
from torch import nn

from actionspan.arrays import Float64, Int64
from actionspan.parallel.member import Replica
from actionspan.recognition.batches import clip_batches
from actionspan.recognition.sampling import evaluation_samples
from actionspan.recognition.settings import RecognitionSettings
from actionspan.recognition.task import Task
from actionspan.running.prefetch import prefetched

_PICTURES = 40  # at once, or those of one clip where it has more


@torch.inference_mode()
def class_probabilities(
    model: nn.Module, task: Task, replica: Replica, clips: Int64, samples: int
) -> Float64:
    """Return (N, classes) mean probabilities over `samples` positions of each clip.

    Ranks take whole batches in turn: no clip is repeated to fill a batch up, and the result is the
    same to the bit on any number of ranks.

    `clips` are (N,) places in the store. The model is the same on all ranks.
    """
    model.eval()
    # choose the samples of this rank's batches
    each = max(1, _PICTURES // samples)
    batches = [clips[first : first + each].tolist() for first in range(0, len(clips), each)]
    numbers = range(replica.rank, len(batches), replica.size)
    spread = partial(evaluation_samples, task.store, count=samples)
    wanted = [list(itertools.chain(*map(spread, batches[number]))) for number in numbers]
    # a short clip repeats its positions, which need be computed only once
    distinct = [list(dict.fromkeys(batch)) for batch in wanted]
    size = task.settings.input_size
    data = prefetched(clip_batches(task.store, task.stream, distinct, size, task.readers))
    # score them
    scored = []
    with contextlib.closing(data):
        for number, batch, once, (pictures, _) in zip(numbers, wanted, distinct, data, strict=True):
            images = task.inputs(torch.from_numpy(pictures))
            with autocast(task.settings, task.inputs.device):
                scores = model(images)
            values = scores.float().softmax(1).double().cpu().numpy()
            by_sample = dict(zip(once, values, strict=True))
            repeated = np.stack([by_sample[sample] for sample in batch])
            by_clip = repeated.reshape(len(batches[number]), samples, -1)
            scored.append((number, by_clip.mean(axis=1)))
    # collect those of all ranks
    scored = sum(replica.gather(scored, "the probabilities"), start=[])
    scored.sort(key=lambda numbered: numbered[0])
    return np.concatenate([batch for _, batch in scored])


def autocast(settings: RecognitionSettings, device: torch.device) -> torch.autocast:
    """Return the context in which a network computes in the precision of the settings."""
    half = settings.precision == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16 if half else None, enabled=half)
