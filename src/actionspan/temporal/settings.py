"""The knobs of the temporal network and its training."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from actionspan.settings import option
from actionspan.temporal.labels import LabelRule
from actionspan.training.schedule import decay_after, rate_after

ModelName = Literal["origin", "se", "dense", "mtn", "cnn2", "cnn4", "attention", "tcn"]
FusionRule = Literal["fixed", "learned"]
MODELS: tuple[ModelName, ...] = get_args(ModelName)


@dataclass(frozen=True, kw_only=True)
class PredictionSettings:
    """How a trained network is applied."""

    scales: str = option(
        "1",
        "lengths at which a sequence is seen, as shares of its own, by commas; probabilities are "
        "averaged over them (0.7,1,1.4: three scales)",
    )

    def __post_init__(self) -> None:
        self.shares()

    def shares(self) -> tuple[float, ...]:
        """Return `scales` as numbers.

        Raises:
            ValueError: One is no number from 0.1 to 10, or there is none.
        """
        try:
            shares = tuple(float(word) for word in self.scales.split(","))
        except ValueError:
            shares = (0.0,)
        if not all(0.1 <= share <= 10 for share in shares):
            raise ValueError(f"scales {self.scales!r}: numbers from 0.1 to 10 by commas")
        return shares


@dataclass(frozen=True, kw_only=True)
class TemporalSettings:
    """How the temporal network is built and trained.

    The shape is BSN's and MTN's. Scale, epochs and noise were chosen by cross-validation over the
    training videos of small sets; BSN trains 20 epochs with scale 0.01 and without noise on 9,649
    videos.
    """

    hidden: int = option(512, "feature maps of each hidden layer")
    output_scale: float = option(1.0, "factor of the sigmoid's input (BSN's reference: 0.01)")
    fusion_weight: float = option(0.5, "W of W·ConvNet + (1 - W)·DenseNet (models dense and mtn)")
    fusion: FusionRule = option(
        "fixed", "W stays fusion_weight, or is learned from there on (models dense and mtn)"
    )
    dropout: float = option(0.0, "chance that a hidden value is dropped in training")
    feature_noise: float = option(
        1.0, "deviation of the normal noise added to each feature in training (their own is near 1)"
    )
    labels: LabelRule = option("bsn", "rule of the labels")
    boundary_ratio: float = option(
        0.1, "width of a start or end region as part of its instance, one bin at least (bsn)"
    )
    smooth_labels: float = option(
        0.0,
        "deviation of the Gaussian that softens start and end labels; 0: hard labels",
        unit="bins",
    )
    window_coverage: float = option(
        0.0,
        "train on windows that hold more than this share of some instance; 0: on all (BSN on "
        "THUMOS14: 0.9)",
    )
    epochs: int = option(40, "passes over the training videos")
    batch_size: int = option(16, "videos a step")
    learning_rate: float = option(0.001, "Adam's step size")
    decay_epochs: str = option("20,30", "epochs after which the learning rate falls, by commas")
    decay_factor: float = option(0.1, "what the learning rate is multiplied by at each of them")
    weight_decay: float = option(0.0001, "Adam's L2 penalty")
    keep: Literal["best", "last"] = option(
        "best", "which epoch becomes the model: the best by validation loss, or the last"
    )
    seed: int = option(1, "seed of the weights, the order of the videos, dropout and noise")

    def __post_init__(self) -> None:
        for name in ("hidden", "epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)}: at least 1")
        for name in ("output_scale", "learning_rate"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} {value}: a number above 0")
        for name in ("boundary_ratio", "weight_decay", "feature_noise"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} {value}: a number, 0 at least")
        if self.smooth_labels != 0 and not 0.5 <= self.smooth_labels < math.inf:
            raise ValueError(
                f"smooth_labels {self.smooth_labels}: 0, or a number of 0.5 or more (below, a "
                "boundary between two bins is above ½ in neither)"
            )
        if not 0 <= self.fusion_weight <= 1:
            raise ValueError(f"fusion_weight {self.fusion_weight}: from 0 to 1")
        if self.fusion not in get_args(FusionRule):
            raise ValueError(f"fusion {self.fusion!r}: one of {', '.join(get_args(FusionRule))}")
        if self.fusion == "learned" and not 0 < self.fusion_weight < 1:
            raise ValueError(
                f"fusion_weight {self.fusion_weight}: above 0 and below 1 where fusion is learned"
            )
        if not 0 <= self.window_coverage < 1:
            raise ValueError(f"window_coverage {self.window_coverage}: from 0 to below 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout {self.dropout}: from 0 to below 1")
        if not 0 < self.decay_factor <= 1:
            raise ValueError(f"decay_factor {self.decay_factor}: above 0, 1 at most")
        if self.labels not in get_args(LabelRule):
            raise ValueError(f"labels {self.labels!r}: one of {', '.join(get_args(LabelRule))}")
        if self.keep not in ("best", "last"):
            raise ValueError(f"keep {self.keep!r}: best or last")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed {self.seed}: from 0 to 4294967295")
        decay_after(self.decay_epochs)

    def learning_rate_in(self, epoch: int) -> float:
        """Return the learning rate of an epoch (the first is 1)."""
        after = decay_after(self.decay_epochs)
        return rate_after(self.learning_rate, self.decay_factor, after, epoch)
