"""The data and the initial network of a classifier of one stream, and its scores of clips."""

import contextlib
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float64, Int64
from actionspan.errors import InputError, printable
from actionspan.jobs.determinism import seed_torch
from actionspan.jobs.prefetch import prefetched
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.runtime import choose_device
from actionspan.networks.weights import checked, fill, load_state, widen
from actionspan.parallel.member import Replica
from actionspan.recognition.batches import clip_batches, evaluation_samples
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.settings import RecognitionSettings
from actionspan.storage.model_files import read_model
from actionspan.video.jpegs import Stream

FORMAT = "actionspan recognition 1"  # of model.safetensors; the features stage reads its state_dict
_CLASSES = 100_000  # of a model at most
_PICTURES = 40  # at once, or all of one clip where it has more


def build_classifier(
    settings: RecognitionSettings, channels: int, classes: int, weights: Path | None
) -> nn.Module:
    """Return a network of `channels` input planes, 3 or 2L, and a last layer of random weights.

    Weights of RGB may start a flow network: its first convolution gets the mean of theirs over the
    three colours for each plane (paper 003, section V). `weights` are a checkpoint, or a name of
    torchvision's; None: those that come as a package.

    Raises:
        InputError: The weights do not exist, or exist but none are wanted.
    """
    if weights is not None and not settings.pretrained:
        raise InputError(f"{weights}: not used with pretrained false; leave out one of them")
    seed_torch(settings.seed)
    design = architecture(settings.network)
    network = design.build(channels, classes)
    if not settings.pretrained:
        return network
    state = load_state(settings.network, weights, design.last)
    new = {name: value for name, value in network.state_dict().items() if design.last in name}
    return _filled(network, {**state, **new}, design.first, str(weights or settings.network))


def carry_over(
    settings: RecognitionSettings, channels: int, classes: Sequence[str], rgb: Path
) -> nn.Module:
    """Return a flow network that starts from `rgb`, the model.safetensors of the RGB network.

    Its last layer is carried over too; both streams have the same `classes`.

    Raises:
        InputError: It is not such a model, or has a different network or different classes.
    """
    part = read_model(rgb)
    if "format" not in part or part["format"].value != FORMAT:
        raise InputError(f"{rgb}: not a model of 'actionspan recognition train' ({FORMAT!r})")
    stream, trained = part["stream"].text(), part["network"].text()
    if stream != "rgb":
        raise InputError(f"{rgb}: a network of {printable(stream)}, but flow starts from rgb")
    if trained != settings.network:
        differ = f"a {printable(trained)}, but the flow network is a {settings.network}"
        raise InputError(f"{rgb}: {differ}; train both alike")
    given = [each.text() for each in part["classes"].items(2, _CLASSES)]
    if given != list(classes):
        own, wanted = (printable(", ".join(each))[:300] for each in (given, classes))
        raise InputError(
            f"{rgb}: its classes are {own}, but the clips' are {wanted}; train both on the "
            "same clips"
        )
    design = architecture(settings.network)
    network = design.build(channels, len(classes))
    return _filled(network, part["state_dict"].tensors(), design.first, str(rgb))


def _filled(network: nn.Module, state: dict[str, Tensor], first: str, origin: str) -> nn.Module:
    kernel = f"{first}.weight"
    if kernel not in state:
        raise InputError(f"{origin}: not weights of this network: lacks {kernel}")
    channels = network.state_dict()[kernel].shape[1]
    state |= checked(state, [kernel], origin)
    if state[kernel].shape[1:2].numel() == 3 != channels:
        state[kernel] = widen(state[kernel], channels)
    fill(network, state, origin)
    return network


@dataclass(frozen=True)
class Task:
    """Data and settings, which stay the same while a classifier is trained."""

    store: ClipStore
    stream: Stream
    settings: RecognitionSettings
    inputs: Inputs
    training: Int64  # places of clips in the store
    validation: Int64
    readers: int  # threads that decode; cores that the network computes on are not for them

    @property
    def labels(self) -> Int64:
        """Return the class of each clip of the store."""
        return np.array([clip.label for clip in self.store.clips], np.int64)


def read_task(
    clips: Sequence[Path],
    stream: Stream,
    settings: RecognitionSettings,
    learners: int,
    weights: Path | None,
    carried: Path | None,
    threads: int,
    verbose: bool,
) -> tuple[Task, nn.Module]:
    """Open the clips and build the network to start from.

    It starts from the trained RGB network `carried` if that is given, else from `weights`. Classes
    and subsets without a clip are named on standard error if `verbose`.

    Raises:
        InputError: A file cannot be used, or there are too few clips or classes.
    """
    # 1. open the clips
    store = ClipStore(clips)
    training, validation = store.rows("training"), store.rows("validation")
    names = ", ".join(map(str, clips))
    if len(training) < learners:
        count = f"{len(training)} training clips for {learners} learners"
        raise InputError(f"{names}: {count}; each needs one")
    if len(store.classes) < 2:
        only = store.classes[0]
        raise InputError(f"{names}: one class, {only!r}; a classifier needs two or more")
    if verbose:
        seen = {store.clips[clip].label for clip in training.tolist()}
        for label, name in enumerate(store.classes):
            if label not in seen:
                print(f"{names}: no training clip of class {name!r}", file=sys.stderr)
        if not len(validation):
            print(f"{names}: no validation clip; the last epoch is kept", file=sys.stderr)
    # 2. build the network
    channels = store.channels[stream]
    if carried is not None:
        model = carry_over(settings, channels, store.classes, carried)
    else:
        model = build_classifier(settings, channels, len(store.classes), weights)
    device = choose_device(settings.device)
    inputs = Inputs(architecture(settings.network), channels, device)
    readers = threads if device.type == "cuda" else 1
    return Task(store, stream, settings, inputs, training, validation, readers), model


@torch.inference_mode()
def class_probabilities(
    model: nn.Module, task: Task, replica: Replica, clips: Int64, samples: int
) -> Float64:
    """Return (N, classes) mean probabilities over `samples` positions of each clip.

    `clips` are (N,) places in the store; the model is the same on all ranks. Ranks take whole
    batches in turn, so the result is the same to the bit on any number of them.
    """
    model.eval()
    # 1. choose the samples of this rank's batches
    each = max(1, _PICTURES // samples)
    batches = [clips[first : first + each].tolist() for first in range(0, len(clips), each)]
    numbers = range(replica.rank, len(batches), replica.size)
    spread = partial(evaluation_samples, task.store, count=samples)
    wanted = [list(itertools.chain(*map(spread, batches[number]))) for number in numbers]
    # a short clip repeats its positions, which need be computed only once
    distinct = [list(dict.fromkeys(batch)) for batch in wanted]
    size = task.settings.input_size
    data = prefetched(clip_batches(task.store, task.stream, distinct, size, task.readers))
    # 2. score them
    scored = []
    with contextlib.closing(data):
        for number, batch, once, (pictures, _) in zip(numbers, wanted, distinct, data, strict=True):
            images = task.inputs(torch.from_numpy(pictures))
            with autocast(task.settings, task.inputs.device):
                scores = model(images)
            values = scores.float().softmax(1).double().cpu().numpy()
            by_sample = dict(zip(once, values, strict=True))
            repeated = np.stack([by_sample[sample] for sample in batch])
            by_clip = repeated.reshape(-1, samples, values.shape[1])
            scored.append((number, by_clip.mean(axis=1)))
    # 3. collect the scores of all ranks
    scored = sum(replica.gather(scored, "the probabilities"), start=[])
    scored.sort(key=lambda numbered: numbered[0])
    nothing = np.zeros((0, len(task.store.classes)))
    return np.concatenate([nothing, *(batch for _, batch in scored)])


def autocast(settings: RecognitionSettings, device: torch.device) -> torch.autocast:
    """Return the context in which a network computes in the precision of the settings."""
    half = settings.precision == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16 if half else None, enabled=half)
