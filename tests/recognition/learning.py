"""A tiny task that classifiers can learn: what is dark, grey or bright, still or moving."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actionspan.recognition.clip_lists import ClipSettings
from actionspan.recognition.clip_store import write_clip
from actionspan.recognition.settings import RecognitionSettings
from actionspan.recognition.training import RecognitionTrainer
from actionspan.settings import option
from actionspan.storage.writing import create_h5
from actionspan.video.jpegs import Position
from networks.tiny import TINY_NETWORK

STACK = 2
LEVELS = {"bright": 200, "dark": 50, "background": 120}
TINY: dict[str, Any] = {
    "network": TINY_NETWORK,
    "pretrained": False,
    "input_size": 64,
    "epochs": 3,
    "batch_size": 2,
    "learning_rate": 0.001,
    "validation_samples": 2,
    "final_samples": 3,
}


@dataclass(frozen=True, kw_only=True)
class AnyNetwork(RecognitionSettings):
    """Settings that also take a network which only tests have registered."""

    network: str = option(TINY_NETWORK, "any network")


def tiny(**changed: Any) -> RecognitionSettings:
    return AnyNetwork(**{**TINY, **changed})


def write_task(path: Path, training: int = 4, validation: int = 2, stack: int = STACK) -> Path:
    settings = ClipSettings(height=32, width=48, stack=stack)
    counts = {"training": training, "validation": validation}
    with create_h5(path, "test") as file:
        for subset, label in itertools.product(counts, LEVELS):
            for number in range(counts[subset]):
                random = np.random.default_rng((LEVELS[label], number, counts[subset]))

                def noisy(*shape: int, random: Any = random, level: int = LEVELS[label]) -> Any:
                    return (level + random.integers(-30, 31, shape)).astype(np.uint8)

                positions = [
                    Position(noisy(32, 48, 3), noisy(2 * stack, 32, 48), float(second))
                    for second in range(2 + number)
                ]
                group = file.create_group(f"{subset}.{label}.{number}")
                write_clip(group, positions, settings, label=label, subset=subset, bound=20.0)
    return path


@contextmanager
def kill_in_epoch(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[None]:
    """Let a training that is started in the block end as if killed when an epoch begins."""
    train_epoch = RecognitionTrainer.train_epoch

    def killed(trainer: RecognitionTrainer, epoch: int) -> Any:
        if epoch == number:
            raise KeyboardInterrupt
        return train_epoch(trainer, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(RecognitionTrainer, "train_epoch", killed)
        with pytest.raises(KeyboardInterrupt):
            yield
