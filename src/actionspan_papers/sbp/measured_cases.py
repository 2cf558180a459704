"""What is measured: an untrained encoder, a temporal network above it, and ways to train both."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.memory.sampling import kept_count
from actionspan.memory.ways import Execution, Way, make_way
from actionspan.networks.architecture import Architecture, Inputs, architecture
from actionspan.networks.weights import fold_batch_norms
from actionspan.temporal.mtn import MTN
from actionspan_papers.sbp.settings import MeasureSettings

_STEPS = 100  # of the temporal network
_RATE = 1e-5
_KEY = "video"


class Case(NamedTuple):
    """A way to train, and the part of the snippets that is kept."""

    way: Way
    execution: Execution
    ratio: float

    @property
    def label(self) -> str:
        """The way, and the execution where it has two."""
        return f"{self.way} {self.execution}" if self.way == "sbp" else self.way


FULL = Case("full", "split", 1.0)


def cases(ratios: Sequence[float]) -> list[Case]:
    """Return all ways, each at each ratio if it has one; full training first."""
    sampled: list[tuple[Way, Execution]] = [
        ("sbp", "split"),
        ("sbp", "replay"),
        ("sbp_checkpoint", "split"),
        ("frame_dropout", "split"),
        ("bank", "split"),
    ]
    found = [FULL, Case("checkpoint", "split", 1.0), Case("frozen", "split", 1.0)]
    return found + [Case(*named, ratio) for named in sampled for ratio in ratios]


class Pictures:
    """A video of 8-bit pictures, read as the numbers that a network takes."""

    def __init__(self, network: Architecture, count: int, size: int, device: str) -> None:
        self._pictures = torch.zeros((count, size, size, 3), dtype=torch.uint8, device=device)
        if device != "meta":
            seeded = torch.Generator().manual_seed(0)
            self._pictures.random_(256, generator=seeded if device == "cpu" else None)
        self._inputs = Inputs(network, 3, torch.device(device))
        self.nbytes = self._pictures.nbytes

    def __len__(self) -> int:
        return len(self._pictures)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Return rows (n,) as (n, 3, size, size)."""
        numbers: Tensor = self._inputs(self._pictures[rows.to(self._pictures.device)])
        return numbers


class TemporalLoss(nn.Module):
    """MTN over the features of a video, resampled to 100 steps, and the mean square of its output.

    Which loss it is changes neither bytes nor seconds.
    """

    resampling: Tensor

    def __init__(self, channels: int, count: int) -> None:
        super().__init__()
        matrix = functional.interpolate(
            torch.eye(count)[None], size=_STEPS, mode="linear", align_corners=True
        )
        self.register_buffer("resampling", matrix[0].T.contiguous())  # (100, T)
        self.network = MTN(channels)

    def forward(self, features: Tensor) -> Tensor:
        """Return the loss of features (T, C)."""
        probabilities: Tensor = self.network((self.resampling @ features)[None])
        return probabilities.square().mean()


class Parts(NamedTuple):
    """What a step is made of."""

    encoder: nn.Module
    head: TemporalLoss
    frames: Pictures


def build(settings: MeasureSettings, device: str) -> Parts:
    """Return the encoder, the head and the video on a device; on `meta` nothing takes memory."""
    kind = architecture(settings.network)
    encoder = kind.build(3, 1)
    channels = getattr(encoder, kind.last).in_features
    setattr(encoder, kind.last, nn.Identity())
    fold_batch_norms(encoder.eval())
    return Parts(
        encoder.requires_grad_(True).to(device),
        TemporalLoss(channels, settings.snippets).to(device),
        Pictures(kind, settings.snippets, settings.input_size, device),
    )


def stepper(case: Case, parts: Parts, piece: int, *, learning: bool = True) -> Callable[[], None]:
    """Return a training step of a way, with Adam unless it only shall have gradients."""
    frozen = case.way == "frozen"
    module = make_way(case.way, parts.encoder, case.ratio, execution=case.execution, piece=piece)
    trained = [*parts.head.parameters(), *([] if frozen else parts.encoder.parameters())]
    optimiser = torch.optim.Adam(trained, lr=_RATE) if learning else None
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        loss = parts.head(module(parts.frames, generator=generator, key=_KEY))
        torch.autograd.backward((loss,))
        if optimiser is not None:
            optimiser.step()
        for parameter in trained:
            parameter.grad = None

    return step


def kept_part(case: Case, count: int) -> float:
    """Return which part of `count` snippets is really kept."""
    return kept_count(count, case.ratio) / count
