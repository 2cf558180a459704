"""Train a transformer on clips: end to end, with SBP, or with frame dropout."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Generator, Tensor
from torch.nn import functional

from actionspan.memory.counting import saved_bytes
from actionspan.memory.sampling import kept_count, sample_rows
from actionspan.running.determinism import seed_torch
from actionspan_papers.sbp.clips import CLASSES, Clips
from actionspan_papers.sbp.transformer_settings import TransformerSettings
from actionspan_papers.sbp.video_transformer import VideoTransformer

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
