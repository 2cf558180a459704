"""Transformers trained end to end, with SBP or with frame dropout: top-1 on rendered clips.

Their file is written by `table3` and read by figures 1 and 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from torch import Generator, Tensor
from torch.nn import functional

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.files.torch_files import read_torch, write_torch
from actionspan.memory.counting import saved_bytes
from actionspan.memory.sampling import kept_count, sample_rows
from actionspan.running.determinism import deterministic, seed_torch
from actionspan.settings import from_mapping
from actionspan_papers.estimates import Estimate
from actionspan_papers.sbp.clips import CLASSES, Clips, training_and_validation
from actionspan_papers.sbp.published import RECOGNITION, SAMPLING, Recognition, Sampling
from actionspan_papers.sbp.settings import SbpSettings, TransformerSettings
from actionspan_papers.sbp.trainings import Measured, measure
from actionspan_papers.sbp.video_transformer import VideoTransformer
from actionspan_papers.tables import Row

Training = Literal["end-to-end", "frame dropout", "SBP, frame-wise", "SBP, checkerboard"]
TRAININGS: tuple[Training, ...] = get_args(Training)
END_TO_END, DROPOUT, FRAMES, CHECKERBOARD = TRAININGS

_HEADS = 4
_PATCH = 16  # pixels
_DECAY = 0.05  # weight decay
_WARM_UP = 0.1  # of the steps


def make_network(settings: TransformerSettings) -> VideoTransformer:
    """Return the network that all ways train, with random weights."""
    return VideoTransformer(
        len(CLASSES),
        frames=settings.frames,
        height=settings.side,
        width=settings.side,
        channels=2,
        patch=(1, _PATCH, _PATCH),
        features=settings.width,
        heads=_HEADS,
        layers=settings.layers,
        top=settings.top_layers,
    )


def train(
    way: Training, clips: Clips, settings: TransformerSettings, seed: int
) -> VideoTransformer:
    """Return the trained network.

    A seed has the same first weights, order of clips and flips in every way to train. Rows are
    drawn for each clip its own.
    """
    seed_torch(seed, 1)
    network = make_network(settings)
    order, rows = Generator().manual_seed(seed), Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=settings.learning_rate, weight_decay=_DECAY
    )
    count = len(clips.labels)
    steps = settings.epochs * -(-count // settings.batch_size)
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=max(steps, 2), pct_start=_WARM_UP
    )
    for _ in range(settings.epochs):
        for batch in torch.split(torch.randperm(count, generator=order), settings.batch_size):
            flipped = torch.rand(len(batch), generator=order) < 0.5
            inputs = _flip(clips.inputs[batch], flipped)
            scores = _forward(network, way, inputs, settings.keep_ratio, rows)
            loss = functional.cross_entropy(scores, clips.labels[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            rate.step()
    return network.eval()


def _flip(inputs: Tensor, flipped: Tensor) -> Tensor:
    return torch.where(flipped.view(-1, 1, 1, 1, 1), inputs.flip(-1), inputs)


def _forward(
    network: VideoTransformer, way: Training, inputs: Tensor, ratio: float, generator: Generator
) -> Tensor:
    """Return the scores of a step of training."""
    if way == END_TO_END:
        scores: Tensor = network(inputs)
        return scores
    rows = torch.stack([_rows(network, way, ratio, generator) for _ in inputs])  # (B, k)
    dropped: Tensor = network(inputs, only=rows) if way == DROPOUT else network(inputs, rows)
    return dropped


def _rows(network: VideoTransformer, way: Training, ratio: float, generator: Generator) -> Tensor:
    """Draw the nodes of a clip that are kept, as many in every way."""
    t, h, w = network.grid
    if way == CHECKERBOARD:
        # as many nodes as those of the frames that are kept elsewhere
        part = kept_count(t, ratio) / t
        return sample_rows("checkerboard", t * h * w, part, generator, grid=network.grid).rows
    return network.frame_nodes(sample_rows("uniform_random", t, ratio, generator).rows)


def correct(network: VideoTransformer, clips: Clips, batch: int = 100) -> Tensor:
    """Return (n,) 1 where the highest score is the clip's class, else 0."""
    with torch.no_grad():
        found = [network(inputs).argmax(dim=1) for inputs in torch.split(clips.inputs, batch)]
    return (torch.cat(found) == clips.labels).double()


def saved_by_a_clip(ways: Sequence[Training], settings: TransformerSettings) -> dict[Training, int]:
    """Return the bytes that a step of training saves for backward for each clip, by counting."""
    found = {}
    for way in ways:
        network = make_network(settings)
        totals = []
        for count in (1, 5):  # what does not grow with the batch falls out
            shape = (count, settings.frames, 2, settings.side, settings.side)
            with saved_bytes(network) as counted:
                scores = _forward(
                    network, way, torch.zeros(shape), settings.keep_ratio, Generator()
                )
                del scores
            totals.append(counted.total)
        found[way] = (totals[1] - totals[0]) // 4
    return found


class Trained(NamedTuple):
    """Networks by the way they were trained, one for each seed, and what they were made with."""

    settings: TransformerSettings
    networks: dict[Training, list[VideoTransformer]]


def write_trained(path: Path, trained: Trained) -> None:
    """Write settings and weights."""
    weights = {
        way: [network.state_dict() for network in networks]
        for way, networks in trained.networks.items()
    }
    write_torch(path, {"settings": asdict(trained.settings), "weights": weights})


def read_trained(path: Path) -> Trained:
    """Read what `write_trained` wrote.

    Raises:
        InputError: The file is missing, or not one of these.
    """
    content = read_torch(path)
    try:
        settings = from_mapping(TransformerSettings, content["settings"])
        networks = {
            way: [_network(settings, weights) for weights in seeds]
            for way, seeds in content["weights"].items()
        }
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise InputError(f"{path}: not the networks of `papers sbp table3`") from None
    return Trained(settings, networks)


def _network(settings: TransformerSettings, weights: dict[str, object]) -> VideoTransformer:
    network = make_network(settings)
    network.load_state_dict(weights)
    return network.eval()


_PUBLISHED: Mapping[Training, Recognition | Sampling] = {
    END_TO_END: RECOGNITION["Swin-T", "end-to-end"],
    DROPOUT: RECOGNITION["Swin-T", "frame dropout"],
    FRAMES: RECOGNITION["Swin-T", "SBP"],
    CHECKERBOARD: SAMPLING["checkerboard"],
}


def train_all(
    own: SbpSettings, settings: TransformerSettings
) -> tuple[Trained, dict[Training, Measured]]:
    """Train each way with each seed; return the networks and the top-1 of each way."""
    with deterministic(threads=1):
        training, validation = training_and_validation(settings)
        networks = {
            way: [train(way, training, settings, seed) for seed in range(1, own.seeds + 1)]
            for way in TRAININGS
        }
        scored = {
            way: [correct(network, validation).numpy() for network in seeds]
            for way, seeds in networks.items()
        }
    clips = len(validation.labels)
    return Trained(settings, networks), measure(scored, _top1, clips, own.resamples)


def _top1(right: Float64, drawn: Float64) -> float:
    return float(right @ drawn / drawn.sum())


def accuracy_rows(
    found: Mapping[Training, Measured], own: SbpSettings, settings: TransformerSettings
) -> list[Row]:
    """Return a row a way to train: its top-1, and its difference to three others, in points."""
    saved = saved_by_a_clip(TRAININGS, settings)
    rows: list[Row] = []
    for way in TRAININGS:
        printed = _PUBLISHED[way]
        rows.append(
            {
                "way": way,
                "top1": found[way].estimate(own.confidence),
                "less_than_end_to_end": _difference(found, END_TO_END, way, own.confidence),
                "above_frame_dropout": _difference(found, way, DROPOUT, own.confidence),
                "above_frame_wise": _difference(found, way, FRAMES, own.confidence),
                "top1_of_seeds": " ".join(f"{value:.2f}" for value in found[way].seeds),
                "saved_kib_a_clip": f"{saved[way] / 1024:.0f}",
                "saved_share": f"{saved[way] / saved[END_TO_END]:.3f}",
                "published_kinetics": f"{printed.kinetics:g}",
                "published_epic": f"{printed.epic:g}",
            }
        )
    return rows


def _difference(
    found: Mapping[Training, Measured], one: Training, other: Training, confidence: float
) -> Estimate:
    """Return how much the top-1 of one is above another's; a way has no difference to itself."""
    return Estimate() if one == other else found[one].above(found[other], confidence)
