"""How near sampled gradients are to the full one, and how snippets' gradients differ by depth.

A temporal network is trained on the features of the untuned encoder, as before any tuning. What is
compared is the first gradient that the encoder would then get from each video.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float64
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune.encoders import StreamEncoders, build_encoders
from actionspan.finetune.objectives import Objective
from actionspan.finetune.preparation import Task, encode, prepare
from actionspan.finetune.settings import FinetuneSettings
from actionspan.finetune.snippets import SnippetStore
from actionspan.finetune.videos import TunedVideo, divide_videos, frames_of, held
from actionspan.memory.sampling import kept_count
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.networks.names import ImageNetwork
from actionspan.running.determinism import deterministic
from actionspan.running.progress import progress
from actionspan.temporal.settings import TemporalSettings
from actionspan_papers.rows import number
from actionspan_papers.sbp.draws import (
    SAMPLERS,
    BlockGram,
    apart,
    block_grams,
    cosines,
    draw_weights,
    sampled,
)
from actionspan_papers.sbp.gradients import COLUMNS, DEPTH, QUANTITIES, SAMPLING
from actionspan_papers.sbp.settings import GradientSettings

NETWORK: ImageNetwork = "efficientnet_lite0"
_PIECE = 16  # snippets that are encoded at once


class VideoGradients(NamedTuple):
    """A video's features (T, C), the gradients of the loss by them, and the blocks' products."""

    features: Tensor
    gradients: Tensor
    blocks: list[BlockGram]

    @property
    def gram(self) -> Float64:
        """The scalar products (T, T) of the gradients by all parameters."""
        grams = [block.parameter_gradients for block in self.blocks]
        return np.asarray(np.sum(grams, axis=0), np.float64)


def gradient_rows(
    snippets: Sequence[Path], annotations: Path, settings: GradientSettings
) -> list[dict[str, str]]:
    """Return the rows of the table, for the first training videos by name.

    Raises:
        InputError: A file is missing or wrong, or no training video has an instance.
    """
    store = SnippetStore(snippets)
    task = Task(
        store=store,
        videos=divide_videos(store, annotations, choosing_fraction=0),
        settings=FinetuneSettings(
            way="full",
            input_size=settings.input_size,
            temporal_epochs=settings.epochs,
            augment=False,
            seed=settings.seed,
        ),
        rescaling=RescaleSettings(components=settings.components),
        temporal=TemporalSettings(),
        head=None,
    )
    chosen = task.videos.training[: settings.videos]
    rows = []
    with deterministic(threads=1):
        own = EncoderSettings(rgb_encoder=NETWORK, device="cpu")
        encoders = build_encoders(("rgb",), own, store.planes, 0, torch.device("cpu"))
        objective = prepare(encoders, task, _PIECE, None, None, lambda content: None)
        for video in progress(chosen, "gradients", len(chosen)):
            found = video_gradients(encoders, objective, task, video)
            named = {"video": video.name, "snippets": str(len(video.times))}
            rows += sampling_rows(found, named, settings) + depth_rows(found.blocks, named)
    return rows


def video_gradients(
    encoders: StreamEncoders, objective: Objective, task: Task, video: TunedVideo
) -> VideoGradients:
    """Return what a video's snippets give the RGB encoder as gradients; dropout is off."""
    objective.eval()
    target = objective.target(video)
    features = encode(encoders, task, video, _PIECE).requires_grad_()
    objective.loss(features, target, target.labels).backward()  # type: ignore[no-untyped-call]
    assert features.grad is not None
    encoder = encoders.of("rgb")
    assert isinstance(encoder.network, EfficientNetLite0)
    (pictures,) = held(frames_of(task.store, video, task.settings)).parts
    images = Inputs(architecture(NETWORK), pictures.shape[3], pictures.device)(pictures)
    blocks = block_grams(encoder.network.layers(), images, features.grad)
    return VideoGradients(features.detach(), features.grad, blocks)


def sampling_rows(
    found: VideoGradients, named: Mapping[str, str], settings: GradientSettings
) -> list[dict[str, str]]:
    """Return a row a sampler and keep ratio: means over the draws."""
    lengths = {
        "": None,
        "features": found.features.norm(dim=1),
        "gradients": found.gradients.norm(dim=1),
    }
    gram, count = found.gram, len(found.features)
    rows = []
    for sampler, by in SAMPLERS.items():
        for ratio in settings.ratios:
            draws = draw_weights(sampler, count, ratio, settings.draws, lengths[by], settings.seed)
            cosine, error = sampled(gram, draws)
            rows.append(
                _row(
                    part=SAMPLING,
                    **named,
                    sampler=sampler,
                    keep_ratio=f"{ratio:g}",
                    kept=str(kept_count(count, ratio)),
                    cosine=number(float(cosine.mean())),
                    error=number(float(error.mean())),
                )
            )
    return rows


def depth_rows(blocks: Sequence[BlockGram], named: Mapping[str, str]) -> list[dict[str, str]]:
    """Return a row a block and quantity: mean cosines of snippets that are near and far."""
    rows = []
    for name, block in zip(block_names(len(blocks)), blocks, strict=True):
        for quantity in QUANTITIES:
            alike = cosines(getattr(block, quantity))
            near, far = (_mean(alike[pairs]) for pairs in apart(len(alike)))
            rows.append(
                _row(
                    part=DEPTH,
                    **named,
                    block=name,
                    quantity=quantity,
                    neighbours=number(near),
                    distant=number(far),
                )
            )
    return rows


def block_names(count: int) -> list[str]:
    """Return the names of a network's blocks, from the bottom to the top."""
    return ["stem", *(str(block) for block in range(1, count - 1)), "head"]


def _mean(values: Float64) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _row(**cells: str) -> dict[str, str]:
    return {column: cells.get(column, "") for column in COLUMNS}
