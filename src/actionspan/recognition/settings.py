"""The settings of the two-stream classifiers and their training."""

from dataclasses import dataclass
from typing import Literal, get_args

from actionspan.networks.names import ImageNetwork
from actionspan.settings import Checked, option
from actionspan.training.settings import rate_after

Part = Literal["adaptive_batch", "average_state", "transfer"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, kw_only=True)
class RecognitionSettings(Checked):
    """How a classifier of one stream is built and trained (paper 003).

    The paper trains ResNet-152 from ImageNet's weights with a batch of 32 (RGB) or 64 (flow), b1 =
    1, b2 = 2, a cap of 576 and one average an epoch.
    """

    aavg: tuple[Part, ...] = option(
        PARTS,
        "parts of AAVG that are on. adaptive_batch: the batch grows when the validation accuracy "
        "falls; average_state: Adam's moments and the statistics of batch norms are averaged too; "
        "transfer: flow starts from the trained RGB network",
    )
    averaging_steps: int = option(
        -1,
        "K, steps of each learner between two averages; -1: one average an epoch",
        least=1,
        also=-1,
    )
    network: ImageNetwork = option("efficientnet_lite0", "network of a stream (paper: resnet152)")
    pretrained: bool = option(True, "start from public weights; false: from random ones")
    # networks shrink 32-fold, and batch norm needs two values of a batch of one image
    input_size: int = option(
        224, "side of the square that the network sees", unit="pixels", least=64, most=4_096
    )
    epochs: int = option(20, "passes over the training clips", least=1)
    batch_size: int = option(16, "B, clips in a step of each learner, at the start", least=1)
    batch_margin: float = option(
        1.0, "b1: the batch grows when the accuracy is below b1 times the best", above=0
    )
    batch_growth: float = option(2.0, "b2: the factor by which it grows", least=1)
    batch_cap: int = option(
        64, "largest batch of a learner; memory grows with it (paper: 576)", unit="clips", least=1
    )
    optimiser: Literal["adam", "sgd"] = option("adam", "adam, or sgd with momentum 0.9")
    learning_rate: float = option(0.001, "step size of the optimiser", above=0)
    decay_epochs: tuple[int, ...] = option(
        (), "epochs after which the learning rate falls, as in [10, 15]", least=1, rising=True
    )
    decay_factor: float = option(
        0.1, "factor on the learning rate after each of them", above=0, most=1
    )
    weight_decay: float = option(0.0, "L2 penalty", least=0)
    validation_samples: int = option(
        5, "positions of a clip averaged after each epoch", least=1, most=1_000
    )
    final_samples: int = option(25, "positions of a clip averaged at the end", least=1, most=1_000)
    keep: Literal["best", "last"] = option("best", "best epoch by validation accuracy, or last")
    precision: Literal["float32", "bfloat16"] = option("float32", "arithmetic of the network")
    device: Literal["auto", "cpu", "cuda"] = option(
        "auto", "auto, cpu or cuda; auto takes cuda where there is one"
    )
    seed: int = option(
        1,
        "seed of the order, the samples of clips, dropout and new layers",
        least=0,
        most=2**32 - 1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_cap < self.batch_size:
            raise ValueError(f"batch_cap {self.batch_cap}: at least batch_size, {self.batch_size}")

    def is_on(self, part: Part) -> bool:
        """Return whether a part of AAVG is on."""
        return part in self.aavg

    def learning_rate_in(self, epoch: int) -> float:
        """Return the learning rate of an epoch (the first is 1)."""
        return rate_after(self.learning_rate, self.decay_factor, self.decay_epochs, epoch)
