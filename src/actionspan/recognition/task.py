"""What a classifier learns: the clips of a stream, and the network it starts from."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

from actionspan.arrays import Int64
from actionspan.errors import InputError
from actionspan.networks.architecture import architecture
from actionspan.networks.device import choose_device
from actionspan.networks.inputs import Inputs
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.network import build_classifier, carry_over
from actionspan.recognition.settings import RecognitionSettings
from actionspan.video.jpeg_reading import Stream


@dataclass(frozen=True)
class Task:
    """What stays the same while a classifier is trained."""

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

    It starts from the trained RGB network `carried` if that is given, else from `weights`. What
    the clips lack is printed if `verbose`.

    Raises:
        InputError: A file cannot be used, or there are too few clips or classes.
    """
    # open the clips
    store = ClipStore(clips)
    training, validation = store.rows("training"), store.rows("validation")
    names = ", ".join(map(str, clips))
    if len(training) < learners:
        raise InputError(
            f"{names}: {len(training)} training clips for {learners} learners; each needs one"
        )
    if len(store.classes) < 2:
        raise InputError(
            f"{names}: one class, {store.classes[0]!r}; a classifier needs two or more"
        )
    if verbose:
        seen = {store.clips[clip].label for clip in training.tolist()}
        for label, name in enumerate(store.classes):
            if label not in seen:
                print(f"{names}: no training clip of class {name!r}", file=sys.stderr)
        if not len(validation):
            print(f"{names}: no validation clip; the last epoch is kept", file=sys.stderr)
    # build the network
    channels = store.channels[stream]
    if carried is not None:
        model = carry_over(settings, channels, store.classes, carried)
    else:
        model = build_classifier(settings, channels, len(store.classes), weights)
    device = choose_device(settings.device)
    inputs = Inputs(architecture(settings.network), channels, device)
    readers = threads if device.type == "cuda" else 1
    return Task(store, stream, settings, inputs, training, validation, readers), model
