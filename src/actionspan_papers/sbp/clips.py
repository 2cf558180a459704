"""The small transformer of table 3: the rendered clips that it learns from, and its training.

Each clip shows one action or none. It has a scene, a person, a camera and perhaps motion of its own
that is not an action, so that a few hundred clips show more than the videos of a data set that are
cut into as many. They are drawn by the demo's code at a few frames a second, with no file between.
"""

import random
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional

from actionspan.arrays import Float32, Float64
from actionspan.demo.rendering import frames
from actionspan.demo.scenario import LABELS, Event, Shot, VideoPlan
from actionspan.errors import InputError
from actionspan.jobs.determinism import seed_torch
from actionspan.memory.counting import saved_bytes
from actionspan.memory.sampling import kept_count, sample_rows
from actionspan.settings import from_mapping
from actionspan.storage.torch_files import read_torch, write_torch
from actionspan_papers.estimates import Resampled
from actionspan_papers.sbp.published import ACCURACY, CHECKERBOARD, DROPOUT, END_TO_END
from actionspan_papers.sbp.settings import SbpSettings, TransformerSettings
from actionspan_papers.sbp.trainings import measure
from actionspan_papers.sbp.transformer import VideoTransformer

CLASSES = (*LABELS, "background")
SECONDS = Fraction(12, 5)
"""Of a clip."""

_ACTION = 2.0  # seconds; the shortest fall
_SCENES = ("room", "street", "park", "hall")
_DISTRACTORS = ("pan", "object", "flicker", "light", "zoom")
_WIDTH, _HEIGHT = 160, 120  # of the rendered images; their middle square is kept
_SEEDS = {"training": 7, "validation": 8}
_HEADS = 4
_PATCH = 16  # pixels
_DECAY = 0.05  # weight decay
_WARM_UP = 0.1  # of the steps


class Clips(NamedTuple):
    """(n, T, 2, S, S) grey images and their changes since the frame before, and (n,) classes."""

    inputs: Tensor
    labels: Tensor


def training_and_validation(settings: TransformerSettings) -> tuple[Clips, Clips]:
    """Render the clips to train on and those to score, on the scale of the former."""
    training = _render("training", settings.training_clips, settings)
    validation = _render("validation", settings.validation_clips, settings)
    mean = training.mean(axis=(0, 1))  # (S, S)
    spread = max(float((training - mean).std()), 1e-6)
    scale = np.float32(1 / spread)
    return _clips((training - mean) * scale), _clips((validation - mean) * scale)


def _clips(pictures: Float32) -> Clips:
    """Return clips of (n, T, S, S) images; their classes take turns."""
    still = torch.from_numpy(pictures)
    change = torch.zeros_like(still)
    change[:, 1:] = 2 * (still[:, 1:] - still[:, :-1])  # about as large as the images
    labels = torch.arange(len(still)) % len(CLASSES)
    return Clips(torch.stack([still, change], dim=2), labels)


def _render(subset: str, count: int, settings: TransformerSettings) -> Float32:
    """Return (n, T, S, S) images of 0 … 1."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        drawn = [
            _pictures(_plan(subset, index, settings.frames), settings) for index in range(count)
        ]
    finally:
        cv2.setNumThreads(threads)
    return np.stack(drawn).astype(np.float32) / np.float32(255)


def _pictures(plan: VideoPlan, settings: TransformerSettings) -> Float32:
    left = (_WIDTH - _HEIGHT) // 2
    size = settings.side, settings.side
    grey = (cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY) for picture in frames(plan))
    squares = (picture[:, left : left + _HEIGHT] for picture in grey)
    return np.stack([cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in squares])


def _plan(subset: str, index: int, count: int) -> VideoPlan:
    """Plan a clip: classes take turns, all else is drawn."""
    kind = CLASSES[index % len(CLASSES)]
    rng = random.Random(f"clips of {subset} {index}")
    start = rng.uniform(0.05, float(SECONDS) - _ACTION - 0.05)
    actions = () if kind == "background" else (Event(kind, start, start + _ACTION),)
    distractors: tuple[Event, ...] = ()
    if rng.random() < 0.5:
        begin = rng.uniform(0, float(SECONDS) / 2)
        distractors = (Event(rng.choice(_DISTRACTORS), begin, begin + float(SECONDS) / 2),)
    return VideoPlan(
        index=index,
        seed=_SEEDS[subset],
        name=f"{subset}_{index}.mp4",
        subset=subset,
        width=_WIDTH,
        height=_HEIGHT,
        fps=count / SECONDS,
        frames=count,
        codec="",
        actions=actions,
        distractors=distractors,
        shots=(Shot(0.0, rng.choice(_SCENES)),),
    )


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


def train(way: str, clips: Clips, settings: TransformerSettings, seed: int) -> VideoTransformer:
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
            inputs = clips.inputs[batch]
            flipped = torch.rand(len(batch), generator=order) < 0.5
            inputs = torch.where(flipped.view(-1, 1, 1, 1, 1), inputs.flip(-1), inputs)
            scores = _forward(network, way, inputs, settings.keep_ratio, rows)
            loss = functional.cross_entropy(scores, clips.labels[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            rate.step()
    return network.eval()


def _forward(
    network: VideoTransformer, way: str, inputs: Tensor, ratio: float, generator: Generator
) -> Tensor:
    """Return the scores of a step of training."""
    if way == END_TO_END:
        scores: Tensor = network(inputs)
        return scores
    rows = torch.stack([_rows(network, way, ratio, generator) for _ in inputs])  # (B, k)
    dropped: Tensor = network(inputs, only=rows) if way == DROPOUT else network(inputs, rows)
    return dropped


def _rows(network: VideoTransformer, way: str, ratio: float, generator: Generator) -> Tensor:
    """Draw the nodes of a clip that are kept, the same number in every way."""
    t, h, w = network.grid
    if way == CHECKERBOARD:
        part = kept_count(t, ratio) / t  # of the frames that are kept elsewhere
        return sample_rows("checkerboard", t * h * w, part, generator, grid=network.grid).rows
    return network.frame_nodes(sample_rows("uniform_random", t, ratio, generator).rows)


def correct(network: VideoTransformer, clips: Clips, batch: int = 100) -> Tensor:
    """Return (n,) 1 where the highest score is the clip's class, else 0."""
    with torch.no_grad():
        found = [network(inputs).argmax(dim=1) for inputs in torch.split(clips.inputs, batch)]
    return (torch.cat(found) == clips.labels).double()


def layers_of(network: VideoTransformer, clips: Clips, batch: int = 100) -> list[Tensor]:
    """Return the (n, N, D) nodes before the first layer and after each."""
    with torch.no_grad():
        parts = [states_of(network, inputs) for inputs in torch.split(clips.inputs, batch)]
    return [torch.cat(states) for states in zip(*parts, strict=True)]


def states_of(network: VideoTransformer, inputs: Tensor) -> list[Tensor]:
    """Return the (B, N, D) nodes of a batch before the first layer and after each."""
    states = [network.nodes(inputs)]
    for layer in network.encoder.layers:
        states.append(layer(states[-1], None))
    return states


def saved_by_a_clip(way: str, settings: TransformerSettings) -> int:
    """Return the bytes that a step of training saves for backward for each clip, by counting."""
    network = make_network(settings)
    totals = []
    for count in (1, 5):  # what does not grow with the batch falls out
        inputs = torch.zeros((count, settings.frames, 2, settings.side, settings.side))
        with saved_bytes(network) as counted:
            scores = _forward(network, way, inputs, settings.keep_ratio, Generator())
            del scores
        totals.append(counted.total)
    return (totals[1] - totals[0]) // 4


class Trained(NamedTuple):
    """Networks by the way they were trained, one for each seed, and their settings."""

    settings: TransformerSettings
    networks: dict[str, list[VideoTransformer]]


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


def train_all(
    own: SbpSettings, settings: TransformerSettings
) -> tuple[Trained, dict[str, Resampled]]:
    """Train each way with each seed; return the networks and the top-1 of each way."""
    training, validation = training_and_validation(settings)
    networks = {
        way: [train(way, training, settings, seed) for seed in range(1, own.seeds + 1)]
        for way in ACCURACY
    }
    scored = {
        way: [correct(network, validation).numpy() for network in seeds]
        for way, seeds in networks.items()
    }
    clips = len(validation.labels)
    return Trained(settings, networks), measure(scored, _top1, clips, own.resamples)


def _top1(right: Float64, drawn: Float64) -> float:
    return float(right @ drawn / drawn.sum())
