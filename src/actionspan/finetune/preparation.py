"""Before the first step: the memory it takes, the projection, a temporal network.

Encoders that are tuned through a random temporal network are tuned to noise. So that network is
trained for a few epochs first, on features of the untuned encoders.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float32
from actionspan.errors import InputError
from actionspan.features.encoders import device_of
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.features.transform import Transform, fit_transform
from actionspan.finetune.encoders import StreamEncoders, build_encoders
from actionspan.finetune.heads import build_head
from actionspan.finetune.objectives import (
    Objective,
    OnlineObjective,
    ProposalObjective,
    Target,
    backward,
)
from actionspan.finetune.settings import FinetuneSettings, HeadName, Stream
from actionspan.finetune.snippets import SnippetStore
from actionspan.finetune.videos import BlankFrames, TunedVideo, VideoLists, divide_videos, frames_of
from actionspan.jobs.determinism import seed_torch
from actionspan.memory.planning import MEGABYTE, MemoryPlan, plan_memory
from actionspan.parallel.communicator import Communicator
from actionspan.temporal.networks import build_model
from actionspan.temporal.samples import epoch_order
from actionspan.temporal.settings import TemporalSettings

_HEAD_HIDDEN = 128
_HELD_SHARE = 0.2  # of the budget, above which images are not held in memory


@dataclass(frozen=True, kw_only=True)
class Task:
    """Data and settings, which stay the same while encoders are tuned."""

    store: SnippetStore
    videos: VideoLists
    settings: FinetuneSettings
    rescaling: RescaleSettings
    temporal: TemporalSettings
    head: HeadName | None  # of online detection; None: proposals


def read_task(
    stores: Sequence[Path],
    annotations: Path,
    settings: FinetuneSettings,
    rescaling: RescaleSettings,
    temporal: TemporalSettings,
    head: HeadName | None = None,
    readers: int = 1,
) -> Task:
    """Return the task of tuning on snippet stores; `readers` threads decode.

    Raises:
        InputError: A store or the annotations cannot be used.
    """
    store = SnippetStore(stores, readers, settings.snippet_stride)
    held_out = settings.choosing_fraction if settings.keep == "best" else 0.0
    return Task(
        store=store,
        videos=divide_videos(store, annotations, held_out),
        settings=settings,
        rescaling=rescaling,
        temporal=temporal,
        head=head,
    )


def untuned_encoders(task: Task, encoders: EncoderSettings) -> StreamEncoders:
    """Return the encoders to start from; nothing of them learns where the way is `frozen`."""
    settings, device = task.settings, device_of(encoders)
    kept = (task.store.planes, settings.frozen_stages)
    built = build_encoders(settings.streams, encoders, *kept, device, settings.input_size)
    if settings.way == "frozen":
        built.requires_grad_(False)
    return built


@torch.no_grad()
def encode(encoder: nn.Module, task: Task, video: TunedVideo, piece: int) -> Tensor:
    """Return a video's features (T, C), float32, of its images as they are, `piece` at a time."""
    frames = frames_of(task.store, video, task.settings)
    rows = torch.split(torch.arange(len(frames)), piece)
    return torch.cat([encoder(*frames[each]).float() for each in rows])


def encode_all(
    encoder: nn.Module,
    task: Task,
    videos: Sequence[TunedVideo],
    piece: int,
    comm: Communicator | None,
) -> list[Tensor]:
    """Return the features (T, C) of each video; ranks share the work and all have all."""
    size, rank = (comm.Get_size(), comm.Get_rank()) if comm is not None else (1, 0)
    own = [encode(encoder, task, video, piece).cpu() for video in videos[rank::size]]
    parts = [own] if comm is None else comm.allgather(own)
    return [parts[place % size][place // size] for place in range(len(videos))]


def _build_objective(task: Task, transform: Transform) -> Objective:
    """Return the network above the encoders, its weights drawn from the seed."""
    seed_torch(task.settings.seed)
    if task.head is not None:
        labels = task.videos.labels
        head = build_head(task.head, transform.channels, len(labels), _HEAD_HIDDEN)
        return OnlineObjective(transform, head, labels)
    model = build_model(task.settings.temporal, transform.channels, task.temporal)
    return ProposalObjective(transform, model, task.temporal)


def batches_of(videos: int, settings: FinetuneSettings, epoch: int) -> list[list[int]]:
    """Return the steps of an epoch: the places in the list of videos that each takes."""
    size = settings.batch_size
    order: list[int] = epoch_order(np.arange(videos), settings.seed, epoch).tolist()
    return [order[first : first + size] for first in range(0, videos, size)]


def warm_up(objective: Objective, features: Sequence[Tensor], task: Task) -> None:
    """Train the objective on features of the training videos that do not change."""
    settings = task.settings
    targets = [objective.target(video) for video in task.videos.training]
    learned = [each for each in objective.parameters() if each.requires_grad]
    rate, decay = task.temporal.learning_rate, task.temporal.weight_decay
    optimiser = torch.optim.Adam(learned, lr=rate, weight_decay=decay)
    objective.train()
    for epoch in range(1, settings.temporal_epochs + 1):
        steps = batches_of(len(targets), settings, epoch)
        for step, chosen in enumerate(steps):
            seed_torch(settings.seed, epoch, step)  # dropout
            optimiser.zero_grad()
            own = [targets[place] for place in chosen]
            batch = torch.cat([target.labels for target in own])
            backward(objective, own, (features[place] for place in chosen), batch)
            optimiser.step()


def prepare(
    encoders: StreamEncoders,
    task: Task,
    piece: int,
    comm: Communicator | None,
    cached: Mapping[str, Any] | None,
    keep: Callable[[dict[str, Any]], None],
) -> Objective:
    """Return the objective to start from, trained on features of untuned encoders.

    `piece` snippets are encoded at a time; `comm` are the ranks, if there are several. On rank 0
    `keep` stores the state that a restart gets as `cached`.
    """
    if cached is not None:
        arrays = {name: values.numpy() for name, values in cached["transform"].items()}
        objective = _build_objective(task, Transform.from_arrays(arrays))
        objective.load_state_dict(cached["objective"])
        return objective
    training, widths = task.videos.training, encoders.features
    features = encode_all(encoders, task, training, piece, comm)
    videos = (
        (_by_stream(rows, widths), video.times, video.seconds)
        for video, rows in zip(training, features, strict=True)
    )
    objective = _build_objective(task, fit_transform(task.rescaling, videos))
    warm_up(objective, features, task)
    if comm is None or comm.Get_rank() == 0:
        transform = tensors_of(objective.transform)
        keep({"transform": transform, "objective": objective.state_dict()})
    return objective


def _by_stream(rows: Tensor, widths: Mapping[Stream, int]) -> dict[str, Float32]:
    """Split features (T, C) of all streams side by side by stream."""
    parts = torch.split(rows, list(widths.values()), dim=1)
    return {str(stream): part.numpy() for stream, part in zip(widths, parts, strict=True)}


def tensors_of(transform: Transform) -> dict[str, Tensor]:
    """Return a transform as tensors, for a file."""
    arrays = transform.to_arrays()
    return {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}


class _Head(nn.Module):
    """The loss of a video's features, with all that it needs inside."""

    def __init__(self, objective: Objective, target: Target) -> None:
        super().__init__()
        self.objective, self.target = objective, target

    def forward(self, features: Tensor) -> Tensor:
        return self.objective.loss(features, self.target, self.target.labels)


def plan_tuning(task: Task, encoders: StreamEncoders) -> MemoryPlan:
    """Return the plan of a tuning; it does not depend on the content of the images.

    Images are held in memory where that takes little of the budget; the plan's `picture_bytes`
    are above 0 then.

    Raises:
        InputError: The budget is too small; the line names the least.
    """
    # 1. the head for the longest video; features are not needed yet
    settings, widths = task.settings, encoders.features
    black = _by_stream(torch.zeros(1, sum(widths.values())), widths)
    objective = _build_objective(task, fit_transform(task.rescaling, [(black, np.zeros(1), 1.0)]))
    longest = max(task.videos.training, key=lambda video: len(video.times))
    head = _Head(objective, objective.target(longest))
    blank = partial(BlankFrames, len(longest.times), settings, task.store.planes)

    planned = partial(
        plan_memory,
        encoders,
        head,
        budget_mb=settings.memory_budget_mb,
        keep_ratio=None if settings.keep_ratio == "auto" else settings.keep_ratio,
        way=settings.way,
        execution=settings.execution,
        sampler=settings.sampler,
        videos=len(task.videos.training),
    )
    # 2. with images in memory where there is room, else without
    held = blank(held=True)
    if held.nbytes <= _HELD_SHARE * settings.memory_budget_mb * MEGABYTE:
        with suppress(ValueError):  # it may fit without them
            return planned(held)
    try:
        return planned(blank(held=False))
    except ValueError as error:
        raise InputError(f"finetune: {error}") from None


def plan_line(plan: MemoryPlan) -> str:
    """Return a plan in one line."""
    return (
        f"{plan.way}, {plan.execution} in pieces of {plan.piece}, keep ratio {plan.keep_ratio:g}: "
        f"at most {plan.expected_bytes / MEGABYTE:.0f} MB of {plan.budget_bytes / MEGABYTE:.0f} MB,"
        f" for videos of up to {plan.longest} snippets"
    )
