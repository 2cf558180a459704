"""The knobs of the two-stream classifiers and their training."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from actionspan.networks.names import ImageNetwork
from actionspan.settings import option
from actionspan.training.schedule import decay_after, rate_after

Variant = Literal["aavg1", "aavg2", "aavg3", "aavg4", "custom"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


@dataclass(frozen=True, kw_only=True)
class RecognitionSettings:
    """How a classifier of one stream is built and trained (paper 003).

    The paper trains ResNet-152 from ImageNet's weights with a batch of 32 (RGB) or 64 (flow), b1 =
    1, b2 = 2, a cap of 576 and one average an epoch.
    """

    variant: Variant = option(
        "aavg4",
        "which parts of AAVG are on. aavg1: the average of the parameters alone; aavg2: and "
        "adaptive_batch; aavg3: and average_state; aavg4: and transfer; custom: as those three say",
    )
    adaptive_batch: bool = option(
        True, "of custom: the batch grows when the validation accuracy falls"
    )
    average_state: bool = option(
        True, "of custom: Adam's moments and the statistics of batch norms are averaged too"
    )
    transfer: bool = option(True, "of custom: the flow network starts from the trained RGB network")
    averaging_steps: int = option(
        -1, "K, steps of each learner between two averages; -1: one average an epoch"
    )
    network: ImageNetwork = option("efficientnet_lite0", "the network (paper: resnet152)")
    pretrained: bool = option(True, "start from public weights; no: from random ones")
    input_size: int = option(224, "side of the square the network sees", unit="pixels")
    epochs: int = option(20, "passes over the training clips")
    batch_size: int = option(16, "B, clips a step of each learner, at the start")
    batch_margin: float = option(
        1.0, "b1: the batch grows when the accuracy is below b1 times the best"
    )
    batch_growth: float = option(2.0, "b2: by this factor")
    batch_cap: int = option(
        64, "largest batch of a learner; memory grows with it (paper: 576)", unit="clips"
    )
    optimiser: Literal["adam", "sgd"] = option("adam", "adam, or sgd with momentum 0.9")
    learning_rate: float = option(0.001, "step size of the optimiser")
    decay_epochs: str = option("", "epochs after which the learning rate falls, by commas")
    decay_factor: float = option(0.1, "what the learning rate is multiplied by at each of them")
    weight_decay: float = option(0.0, "L2 penalty")
    validation_samples: int = option(5, "positions of a clip averaged after each epoch")
    final_samples: int = option(25, "positions of a clip averaged at the end")
    keep: Literal["best", "last"] = option(
        "best", "which epoch becomes the model: the best by validation accuracy, or the last"
    )
    precision: Literal["float32", "bfloat16"] = option("float32", "arithmetic of the network")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "auto: cuda where there is one")
    seed: int = option(1, "seed of the order, the samples of clips, dropout and new layers")

    def __post_init__(self) -> None:
        counts = ("epochs", "batch_size", "validation_samples", "final_samples")
        # networks shrink 32-fold, and batch norm needs two values of a batch of one picture
        for name, least in (*((name, 1) for name in counts), ("input_size", 64)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} {getattr(self, name)}: at least {least}")
        if self.batch_cap < self.batch_size:
            raise ValueError(f"batch_cap {self.batch_cap}: at least batch_size, {self.batch_size}")
        for name in ("batch_margin", "learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} {getattr(self, name)}: a number above 0")
        if not 1 <= self.batch_growth < math.inf:
            raise ValueError(f"batch_growth {self.batch_growth}: a number, 1 at least")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay {self.weight_decay}: a number, 0 at least")
        if not 0 < self.decay_factor <= 1:
            raise ValueError(f"decay_factor {self.decay_factor}: above 0, 1 at most")
        if self.averaging_steps != -1 and self.averaging_steps < 1:
            raise ValueError(f"averaging_steps {self.averaging_steps}: at least 1, or -1")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant {self.variant!r}: one of {', '.join(VARIANTS)}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed {self.seed}: from 0 to 4294967295")
        decay_after(self.decay_epochs)

    def is_on(self, part: Literal["adaptive_batch", "average_state", "transfer"]) -> bool:
        """Return whether the variant has a part of AAVG."""
        if self.variant == "custom":
            return bool(getattr(self, part))
        first = {"adaptive_batch": 2, "average_state": 3, "transfer": 4}
        return int(self.variant[-1]) >= first[part]

    def learning_rate_in(self, epoch: int) -> float:
        """Return the learning rate of an epoch (the first is 1)."""
        after = decay_after(self.decay_epochs)
        return rate_after(self.learning_rate, self.decay_factor, after, epoch)
