"""The settings of the temporal network and its training."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from actionspan.plugins import plugins
from actionspan.settings import Checked, option
from actionspan.training.settings import Keep, rate_after

LabelRule = Literal["bsn", "mtn"]


@dataclass(frozen=True)
class Network:
    """The properties of a temporal network, known before torch is imported.

    Of snippets as they are, sequences.h5 or causal.h5, proposals are chosen by a density.
    """

    module: str  # of temporal/, or a full name of another package's
    kind: str  # the name of its class there, a `temporal.networks.TemporalNetwork`
    help: str
    features: Literal["features", "sequences", "causal"] = "features"  # .h5, that it learns from
    takes: tuple[str, ...] = ()  # further settings of its class, not in `temporal.networks.SHAPE`
    fixed: Mapping[str, Any] = field(default_factory=dict)  # further arguments of its class
    on_steps: bool = True  # its loss is on start, action and end of each step alone


_MTN, _SPAN = "mtn", "span"
_WEIGHED = ("fusion_weight",)
MODELS: dict[str, Network] = {
    "origin": Network(_MTN, "BaseTEM", "BSN's TEM"),
    "se": Network(_MTN, "BaseTEM", "SE-ConvNet alone", fixed={"squeeze": True}),
    "dense": Network(
        _MTN, "MTN", "TEM + Multipath DenseNet", takes=_WEIGHED, fixed={"squeeze": False}
    ),
    "mtn": Network(
        _MTN, "MTN", "SE-ConvNet + Multipath DenseNet", takes=_WEIGHED, fixed={"squeeze": True}
    ),
    "cnn2": Network(_MTN, "BaseTEM", "TEM with 2 convolutions", fixed={"layers": 2}),
    "cnn4": Network(_MTN, "BaseTEM", "TEM with 4 convolutions", fixed={"layers": 4}),
    "span": Network(
        *(_SPAN, "SpanNetwork", "cross-fitted dilated convolutions over snippets"),
        features="sequences",
        takes=("members",),
        on_steps=False,
    ),
    "stream": Network(
        *(_SPAN, "StreamNetwork", "span for a video that is still being recorded"),
        features="causal",
        takes=("members", "look_ahead"),
        on_steps=False,
    ),
}
MODELS |= {
    name: Network(module=point.module, kind=point.attr, help=f"from {point.module}")
    for name, point in plugins("networks", tuple(MODELS)).items()
}
ModelName = str  # a key of MODELS
# the features, sequences.h5 or causal.h5, of models of snippets as they are
SEQUENCES = {name: each.features for name, each in MODELS.items() if each.features != "features"}
ON_SEQUENCES = tuple(SEQUENCES)


@dataclass(frozen=True, kw_only=True)
class TemporalSettings(Checked):
    """How the temporal network is built and trained.

    Scale, epochs and noise were chosen by cross-validation over the training videos of small sets;
    BSN trains 20 epochs with scale 0.01 and without noise on 9,649 videos.
    """

    hidden: int = option(512, "feature maps of each hidden layer", least=1, most=65_536)
    output_scale: float = option(
        1.0,
        "factor of the sigmoid's input (BSN's reference: 0.01, for large sets)",
        above=0,
        most=1e6,
    )
    fusion_weight: float = option(
        0.5, "W of W·ConvNet + (1 - W)·DenseNet (models dense and mtn)", least=0, most=1
    )
    dropout: float = option(
        0.0, "probability that a hidden value is dropped in training", least=0, below=1
    )
    members: int = option(
        5,
        "networks of span and stream, each trained without its own part of the videos",
        least=2,
        most=100,
    )
    look_ahead: int = option(
        1,
        "snippets behind its own that stream's convolutions see; its cues' snippets come on top",
        unit="snippets",
        least=0,
        most=7,
    )
    feature_noise: float = option(
        1.0,
        "deviation of the noise added to features in training (theirs is near 1); with C < 256 "
        "features sqrt(C / 256) times this",
        least=0,
    )
    speed: float = option(
        0.3,
        "span and stream learn each video slower or faster, at a new speed in each epoch: its "
        "logarithm is at most this, either way; 0: as it is",
        least=0,
        most=2,
    )
    labels: LabelRule = option("bsn", "rule of the labels: bsn or mtn (docs/method.md)")
    boundary_ratio: float = option(
        0.1, "width of a start or end region as share of its instance, at least one step", least=0
    )
    window_coverage: float = option(
        0.0,
        "train on windows with more than this share of an instance (BSN: 0.9); 0: all",
        least=0,
        below=1,
    )
    epochs: int = option(40, "passes over the training videos", least=1)
    batch_size: int = option(16, "videos (or windows) in a step", least=1)
    learning_rate: float = option(0.001, "Adam's step size", above=0)
    decay_epochs: tuple[int, ...] = option(
        (20, 30), "epochs after which the learning rate falls", least=1, rising=True
    )
    decay_factor: float = option(
        0.1, "factor of the learning rate after each of them", above=0, most=1
    )
    weight_decay: float = option(0.0001, "Adam's L2 penalty", least=0)
    keep: Keep = option(
        "last",
        "last epoch, average of the weights of the last epochs, or best epoch by validation loss "
        "(docs/protocol.md)",
    )
    average_epochs: int = option(20, "how many epochs are in the average, one weight each", least=1)
    seed: int = option(
        1, "seed of weights, order of videos, dropout and noise", least=0, most=2**32 - 1
    )

    def learning_rate_in(self, epoch: int) -> float:
        """Return the learning rate of an epoch (the first is 1)."""
        return rate_after(self.learning_rate, self.decay_factor, self.decay_epochs, epoch)
