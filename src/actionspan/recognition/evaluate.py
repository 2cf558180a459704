"""Class probabilities of clips: the mean over positions spread evenly over each."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from actionspan.networks.inputs import Inputs
from actionspan.parallel.member import Replica
from actionspan.recognition.batches import clip_batches
from actionspan.recognition.clip_store import ClipStore, Stream
from actionspan.recognition.sampling import evaluation_samples
from actionspan.recognition.settings import RecognitionSettings

Doubles = NDArray[np.float64]
PICTURES = 40  # at once, or one clip's where it has more


class Evaluator:
    """Scores clips of a store with a network, perhaps on many ranks.

    Args:
        store: The clips.
        stream: Which of their pictures.
        settings: Input size and precision.
        inputs: Of the network.
        replica: Whose ranks take the clips in turn; None: this process alone.
        readers: Threads that decode.
    """

    def __init__(
        self,
        store: ClipStore,
        stream: Stream,
        settings: RecognitionSettings,
        inputs: Inputs,
        replica: Replica | None = None,
        readers: int = 1,
    ) -> None:
        self.store, self.stream, self.settings = store, stream, settings
        self.inputs, self.replica, self.readers = inputs, replica, readers

    @torch.inference_mode()
    def probabilities(self, model: nn.Module, clips: NDArray[np.int64], samples: int) -> Doubles:
        """Return the mean probabilities over `samples` positions of each clip.

        Ranks take whole batches in turn: no clip is repeated to fill one up, and the result is
        the same to the bit on any number of ranks.

        Args:
            model: The network, the same on all ranks.
            clips: (N,) places in the store.
            samples: Positions of each clip.

        Returns:
            (N, classes).
        """
        model.eval()
        each = max(1, PICTURES // samples)
        batches = [clips[first : first + each] for first in range(0, len(clips), each)]
        rank, size = (self.replica.rank, self.replica.size) if self.replica else (0, 1)
        numbers = range(rank, len(batches), size)
        samples_of = [
            [
                sample
                for clip in batches[number].tolist()
                for sample in evaluation_samples(self.store, clip, samples)
            ]
            for number in numbers
        ]
        # a short clip repeats its positions, which need be computed once only
        distinct = [list(dict.fromkeys(each)) for each in samples_of]
        size = self.settings.input_size
        read = clip_batches(self.store, self.stream, iter(distinct), size, self.readers)
        own = []
        for number, wanted, known, (pictures, _) in zip(
            numbers, samples_of, distinct, read, strict=True
        ):
            scored = dict(zip(known, self._score(model, pictures), strict=True))
            each_sample = np.stack([scored[sample] for sample in wanted])
            shape = len(batches[number]), samples, -1
            own.append((number, each_sample.reshape(shape).mean(axis=1)))
        found = sum(self.replica.gather(own, "the probabilities"), []) if self.replica else own
        found.sort(key=lambda one: one[0])
        return np.concatenate([batch for _, batch in found])

    def _score(self, model: nn.Module, pictures: NDArray[np.uint8]) -> Doubles:
        images = self.inputs(torch.from_numpy(pictures))
        with autocast(self.settings, self.inputs.device):
            scores = model(images)
        each: Doubles = scores.float().softmax(1).double().cpu().numpy()
        return each


def autocast(settings: RecognitionSettings, device: torch.device) -> torch.autocast:
    """Return the context in which a network computes in the precision of the settings."""
    half = settings.precision == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16 if half else None, enabled=half)


def accuracy(probabilities: Doubles, labels: NDArray[np.int64]) -> float:
    """Return the share of clips whose most probable class is theirs; NaN where there is none.

    Args:
        probabilities: (N, classes).
        labels: (N,).
    """
    if not len(labels):
        return float("nan")
    return float((probabilities.argmax(axis=1) == labels).mean())


def fused(streams: list[Doubles]) -> Doubles:
    """Return the mean of the streams' probabilities (paper 003, section II)."""
    mean: Doubles = np.mean(streams, axis=0)
    return mean
