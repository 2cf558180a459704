"""How near sampled gradients come to the full one, and how snippets' gradients differ by depth.

A temporal network is trained on the features of the untuned encoder, as before any tuning. We then
compare the first gradient that the encoder would get from each video.

A snippet's gradient of all parameters is as long as the encoder is large; kept for each snippet of
a video it would be gigabytes. Everything that is asked of them here (lengths, cosines, the error of
any weighted sum) follows from their scalar products. A sum over parameters is a sum over blocks, so
the gradients of one block at a time are enough: (T, its parameters).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float64
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune.encoders import StreamEncoders, build_encoders
from actionspan.finetune.objectives import Objective
from actionspan.finetune.preparation import Task, encode, prepare
from actionspan.finetune.settings import FinetuneSettings
from actionspan.finetune.snippets import SnippetStore
from actionspan.finetune.videos import TunedVideo, divide_videos, frames_of, held
from actionspan.jobs.progress import progress
from actionspan.memory.sampling import Sampler, kept_count, sample_rows
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.networks.names import ImageNetwork
from actionspan.temporal.settings import TemporalSettings
from actionspan_papers.experiments import Cell, Row
from actionspan_papers.sbp.settings import (
    DEPTH,
    GRADIENT_COLUMNS,
    QUANTITIES,
    SAMPLING,
    GradientSettings,
)

NETWORK: ImageNetwork = "efficientnet_lite0"
_PIECE = 16  # snippets that are encoded at once
_COLUMNS = 2**16  # that are turned into float64 at a time
SAMPLERS: Mapping[Sampler, str] = {
    "uniform_random": "",
    "fixed": "",
    "diverse_feature": "features",
    "diverse_gradient": "gradients",
    "importance": "gradients",
}
"""The samplers that are compared; each looks at the lengths of these vectors, if any."""


class _BlockGram(NamedTuple):
    """The scalar products (T, T) of what T snippets have in one block."""

    activations: Float64
    """Of what comes out of the block."""
    activation_gradients: Float64
    """Of the gradients of the loss by what comes out."""
    parameter_gradients: Float64
    """Of the gradients of the loss by the block's parameters, through one snippet each."""


class _VideoGradients(NamedTuple):
    """A video's features (T, C), the gradients of the loss by them, and the blocks' products."""

    features: Tensor
    gradients: Tensor
    blocks: list[_BlockGram]

    @property
    def gram(self) -> Float64:
        """The scalar products (T, T) of the gradients by all parameters."""
        grams = [block.parameter_gradients for block in self.blocks]
        return np.asarray(np.sum(grams, axis=0), np.float64)


def gradient_rows(
    snippets: Sequence[Path], annotations: Path, settings: GradientSettings
) -> Iterator[Row]:
    """Yield the rows of the table, for the first training videos by name.

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
    own = EncoderSettings(rgb_encoder=NETWORK, device="cpu")
    encoders = build_encoders(("rgb",), own, store.planes, 0, torch.device("cpu"))
    objective = prepare(encoders, task, _PIECE, None, None, lambda content: None)
    for video in progress(chosen, "gradients", len(chosen)):
        found = _video_gradients(encoders, objective, task, video)
        named: dict[str, Cell] = {"video": video.name, "snippets": len(video.times)}
        yield from _sampling_rows(found, named, settings)
        yield from _depth_rows(found.blocks, named)


def _video_gradients(
    encoders: StreamEncoders, objective: Objective, task: Task, video: TunedVideo
) -> _VideoGradients:
    """Return the RGB encoder's gradients from a video's snippets; dropout is off."""
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
    return _VideoGradients(features.detach(), features.grad, blocks)


def _sampling_rows(
    found: _VideoGradients, named: Mapping[str, Cell], settings: GradientSettings
) -> list[Row]:
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
            own = {"sampler": sampler, "keep_ratio": ratio, "kept": kept_count(count, ratio)}
            means = {"cosine": float(cosine.mean()), "error": float(error.mean())}
            rows.append(_row(part=SAMPLING, **named, **own, **means))
    return rows


def _depth_rows(blocks: Sequence[_BlockGram], named: Mapping[str, Cell]) -> list[Row]:
    """Return a row a block and quantity: mean cosines of snippets that are near and far."""
    rows = []
    names = ["stem", *map(str, range(1, len(blocks) - 1)), "head"]  # from the bottom to the top
    for name, block in zip(names, blocks, strict=True):
        for quantity in QUANTITIES:
            alike = cosines(getattr(block, quantity))
            near, far = (_mean(alike[pairs]) for pairs in apart(len(alike)))
            own = {"block": name, "quantity": quantity}
            rows.append(_row(part=DEPTH, **named, **own, neighbours=near, distant=far))
    return rows


def _mean(values: Float64) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _row(**cells: Cell) -> Row:
    return {**dict.fromkeys(GRADIENT_COLUMNS, ""), **cells}


def block_grams(
    blocks: Sequence[nn.Module], inputs: Tensor, feature_gradients: Tensor
) -> list[_BlockGram]:
    """Return the products of each block of a chain, from the bottom to the top.

    Each block is run again on one snippet at a time, with a graph: memory holds what passes between
    blocks, one block's graph for one snippet, and one block's gradients of all.

    Args:
        blocks: Modules that together, in order, are the encoder. Snippets must not meet
            in them: norms in evaluation mode.
        inputs: (T, …) of the first.
        feature_gradients: (T, C) gradients of the loss by the output of the last.

    Raises:
        ValueError: No block is given, or the gradients do not fit the outputs.
    """
    if not blocks:
        raise ValueError("0 blocks: 1 at least")
    between = [inputs]
    with torch.no_grad():
        for block in blocks:
            between.append(block(between[-1]))
    if between[-1].shape != feature_gradients.shape:
        shapes = f"{tuple(feature_gradients.shape)} of features {tuple(between[-1].shape)}"
        raise ValueError(f"gradients {shapes}: the same shape")
    found, gradients = [], feature_gradients
    for block, below, above in zip(blocks[::-1], between[-2::-1], between[:0:-1], strict=True):
        passed, own = _through(block, below, gradients)
        found.append(
            _BlockGram(
                activations=products(above),
                activation_gradients=products(gradients),
                parameter_gradients=products(own),
            )
        )
        gradients = passed
    return found[::-1]


def _through(block: nn.Module, below: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients by what goes in (T, …) and by the parameters (T, P)."""
    parameters = [each for each in block.parameters() if each.requires_grad]
    count = sum(each.numel() for each in parameters)
    passed, own = torch.empty_like(below), below.new_empty(len(below), count)
    for row in range(len(below)):
        one = below[row : row + 1].detach().requires_grad_()
        wanted = gradients[row : row + 1]
        first, *rest = torch.autograd.grad(block(one), [one, *parameters], wanted)
        passed[row] = first[0]
        if rest:
            torch.cat([each.flatten() for each in rest], out=own[row])
    return passed, own


def products(rows: Tensor) -> Float64:
    """Return the (T, T) scalar products of rows (T, …), summed in float64."""
    flat = rows.detach().reshape(len(rows), -1)
    total = np.zeros((len(rows), len(rows)))
    for first in range(0, flat.shape[1], _COLUMNS):
        part = flat[:, first : first + _COLUMNS].double().cpu().numpy()
        total += part @ part.T
    return total


def cosines(gram: Float64) -> Float64:
    """Return the (T, T) cosines that belong to scalar products; NaN where a row is 0."""
    lengths = np.sqrt(np.diag(gram))
    both = np.outer(lengths, lengths)
    found: Float64 = np.divide(gram, both, out=np.full_like(gram, np.nan), where=both > 0)
    return found


def apart(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of (T, T) pairs are neighbours, and which half of the video or more apart."""
    distance = np.subtract.outer(np.arange(count), np.arange(count))
    return distance == 1, 2 * distance >= max(count, 4)


def sampled(gram: Float64, weights: Float64) -> tuple[Float64, Float64]:
    """Return how near weighted sums of gradients come to the sum of all.

    Args:
        gram: (T, T) scalar products of the T gradients.
        weights: (D, T) of D draws, 0 for snippets that a draw leaves out.

    Returns:
        (D,) cosines with the sum of all gradients, and (D,) squared errors ÷ its squared length;
        NaN where a sum is 0.
    """
    squared = float(gram.sum())
    error = weights - 1
    lengths = np.einsum("dt,ts,ds->d", weights, gram, weights, optimize=True)
    missed = np.einsum("dt,ts,ds->d", error, gram, error, optimize=True)
    both = np.sqrt(np.clip(lengths, 0, None) * max(squared, 0.0))
    unknown = np.full(len(weights), np.nan)
    cosine = np.divide(weights @ gram.sum(axis=1), both, out=unknown.copy(), where=both > 0)
    relative = missed / squared if squared > 0 else unknown
    return cosine, np.asarray(relative, np.float64)


def draw_weights(
    sampler: Sampler,
    count: int,
    keep_ratio: float,
    draws: int,
    magnitudes: Tensor | None,
    seed: int,
) -> Float64:
    """Return the (D, T) weights of T rows in each draw, 0 for a row that is dropped.

    Weights are 1/π, with which the mean over draws is the full gradient; but `fixed` draws nothing,
    and keeps the same rows every time.

    Args:
        sampler: Of `SAMPLERS`.
        count: T.
        keep_ratio: r.
        draws: D; of `fixed` one is enough, and there is one.
        magnitudes: (T,) lengths of features or of gradients, for the samplers that want them.
        seed: Of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = np.zeros((1 if sampler == "fixed" else draws, count))
    for draw in weights:
        rows, own = sample_rows(sampler, count, keep_ratio, generator, magnitudes=magnitudes)
        draw[rows.numpy()] = own.numpy()
    return weights
