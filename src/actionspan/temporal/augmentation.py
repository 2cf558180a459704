"""Training videos with noise, and slower or faster than they were filmed.

A few videos show an action at a few speeds and a scene in one light. The draw for a video
follows from the seed, the epoch and its place in the epoch, so that any number of ranks draws the
same.
"""

import math

import torch
from torch import Tensor

from actionspan.jobs.determinism import seed_torch
from actionspan.temporal.labels import INSIDE, KINDS
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.settings import TemporalSettings

_FEWEST = 8  # steps of a video, however fast it is played
_NOISE, _SPEED = range(2)  # the draws


def _generator(settings: TemporalSettings, epoch: int, place: int, what: int) -> torch.Generator:
    generator = torch.Generator()
    seed_torch(settings.seed, epoch, place, what, generator=generator)
    return generator


def add_noise(
    model: TemporalNetwork, features: Tensor, settings: TemporalSettings, epoch: int, first: int
) -> Tensor:
    """Return features (S, T, C) of an epoch's videos, from place `first` on, with normal noise.

    Few features carry together less than many, so that the same noise on each would drown them:
    `feature_noise` is for 256 and more, and the sum of the squares falls with their number below.
    """
    deviation = settings.feature_noise * min(1.0, math.sqrt(features.shape[2] / 256))
    noisy = features.clone()
    for place, video in enumerate(noisy, start=first):
        model.add_noise(video, deviation, _generator(settings, epoch, place, _NOISE))
    return noisy


def change_speed(
    features: Tensor,
    labels: Tensor,
    rows: slice,
    settings: TemporalSettings,
    epoch: int,
    first: int,
) -> tuple[Tensor, Tensor]:
    """Return a batch with its videos played at other speeds, each at its own.

    The logarithm of a speed is uniform within ± `settings.speed`. Values are read between two
    steps; what no longer fits into a video's row is cut at its end.

    Args:
        features: (S, T, C) of this rank's share of the batch, 0 beyond the end of a video.
        labels: (B, T, `labels.COLUMNS`) of the full batch.
        rows: Which of the batch the share is.
        settings: The seed and the range of speeds.
        epoch: The epoch.
        first: The place in the epoch of the batch's first video.
    """
    features, labels = features.clone(), labels.clone()
    for place, targets in enumerate(labels):
        length = int(targets[:, INSIDE].sum())
        if length < _FEWEST:
            continue
        drawn = torch.rand((), generator=_generator(settings, epoch, first + place, _SPEED))
        longer = max(_FEWEST / length, math.exp(settings.speed * (2 * float(drawn) - 1)))
        count = min(len(targets), round(length * longer))
        places = ((torch.arange(count) + 0.5) / longer - 0.5).clamp(0, length - 1)
        targets.copy_(_played_labels(targets, places))
        if rows.start <= place < rows.stop:
            video = features[place - rows.start]
            video.copy_(_padded(_between(video, places), len(video)))
    return features, labels


def _between(values: Tensor, places: Tensor) -> Tensor:
    """Return rows (N, C) of values (T, C) at places (N,), linear between two."""
    before = places.floor().long()
    share = (places - before)[:, None]
    after = (before + 1).clamp(max=len(values) - 1)
    return values[before] * (1 - share) + values[after] * share


def _padded(values: Tensor, steps: int) -> Tensor:
    """Return (steps, C) with zeros behind values (N, C)."""
    return torch.nn.functional.pad(values, (0, 0, 0, steps - len(values)))


def _played_labels(targets: Tensor, places: Tensor) -> Tensor:
    """Return the labels of a video (T, columns) with its steps read at places (N,)."""
    played = targets[places.round().long()]
    played[:, :KINDS] = _between(targets[:, :KINDS], places)
    return _padded(played, len(targets))
