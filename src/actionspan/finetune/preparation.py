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

from actionspan.errors import InputError
from actionspan.features.encoders import device_of
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.features.transform import Transform
from actionspan.finetune.encoders import StreamEncoders, build_encoders
from actionspan.finetune.heads import build_head
from actionspan.finetune.objectives import (
    Objective,
    OnlineObjective,
    Projection,
    ProposalObjective,
    Target,
    fit_projection,
    unfitted,
)
from actionspan.finetune.settings import FinetuneSettings, HeadName
from actionspan.finetune.snippets import SnippetStore
from actionspan.finetune.videos import (
    BlankFrames,
    TunedVideo,
    TunedVideos,
    divide_videos,
    frames_of,
)
from actionspan.memory.planning import MEGABYTE, MemoryPlan, plan_memory
from actionspan.parallel.communicator import Communicator
from actionspan.running.determinism import seed_torch
from actionspan.temporal.networks import build_model
from actionspan.temporal.samples import epoch_order
from actionspan.temporal.settings import TemporalSettings

_HEAD_HIDDEN = 128
_HELD_SHARE = 0.2  # of the budget, above which pictures are not held in memory


@dataclass(frozen=True, kw_only=True)
class Task:
    """What stays the same while encoders are tuned."""

    store: SnippetStore
    videos: TunedVideos
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
    return Task(
        store=store,
        videos=divide_videos(store, annotations, settings.held_out),
        settings=settings,
        rescaling=rescaling,
        temporal=temporal,
        head=head,
    )


def untuned(task: Task, encoders: EncoderSettings) -> StreamEncoders:
    """Return the encoders to start from; nothing of them learns where the way is `frozen`."""
    settings = task.settings
    built = build_encoders(
        settings.streams, encoders, task.store.planes, settings.frozen_stages, device_of(encoders)
    )
    if settings.way == "frozen":
        built.requires_grad_(False)
    return built


@torch.no_grad()
def encode(encoder: nn.Module, task: Task, video: TunedVideo, piece: int) -> Tensor:
    """Return a video's features (T, C), float32, of its pictures as they are, `piece` at a time."""
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
    own = {
        place: encode(encoder, task, videos[place], piece).cpu()
        for place in range(rank, len(videos), size)
    }
    parts = [own] if comm is None else comm.allgather(own)
    every = {place: rows for part in parts for place, rows in part.items()}
    return [every[place] for place in range(len(videos))]


def build_objective(task: Task, transform: Transform) -> Objective:
    """Return the network above the encoders, its weights drawn from the seed."""
    projection = Projection(transform)
    seed_torch(task.settings.seed)
    if task.head is not None:
        labels = task.videos.labels
        head = build_head(task.head, projection.channels, len(labels), _HEAD_HIDDEN)
        return OnlineObjective(projection, head, labels)
    model = build_model(task.settings.temporal, projection.channels, task.temporal)
    return ProposalObjective(projection, transform, model, task.temporal)


def batches_of(order: Sequence[int], size: int) -> list[list[int]]:
    """Return the steps of an epoch: the places in the list of videos that each takes."""
    return [list(order[first : first + size]) for first in range(0, len(order), size)]


def warm_up(objective: Objective, features: Sequence[Tensor], task: Task) -> None:
    """Train the objective on features of the training videos that do not change."""
    settings = task.settings
    targets = [objective.target(video) for video in task.videos.training]
    optimiser = torch.optim.Adam(
        [each for each in objective.parameters() if each.requires_grad],
        lr=task.temporal.learning_rate,
        weight_decay=task.temporal.weight_decay,
    )
    objective.train()
    rows = np.arange(len(targets))
    for epoch in range(1, settings.temporal_epochs + 1):
        order = epoch_order(rows, settings.seed, epoch).tolist()
        for step, chosen in enumerate(batches_of(order, settings.batch_size)):
            seed_torch(settings.seed, epoch, step)  # dropout
            optimiser.zero_grad()
            whole = torch.cat([targets[place].labels for place in chosen])
            for place in chosen:
                loss = objective.loss(features[place], targets[place], whole)
                loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()


def prepare(
    encoders: StreamEncoders,
    task: Task,
    piece: int,
    comm: Communicator | None,
    cached: Mapping[str, Any] | None,
    keep: Callable[[dict[str, Any]], None],
) -> tuple[Objective, Transform]:
    """Return the objective to start from, and the transform that its projection is.

    Args:
        encoders: Untuned.
        task: Videos and settings.
        piece: Snippets that are encoded at a time.
        comm: The ranks, if there are several.
        cached: What an earlier start gave to `keep`, if there is one.
        keep: Takes what another start needs; called on rank 0.
    """
    if cached is not None:
        arrays = {name: values.numpy() for name, values in cached["transform"].items()}
        transform = Transform.from_arrays(arrays)
        objective = build_objective(task, transform)
        objective.load_state_dict(cached["objective"])
        return objective, transform
    training = task.videos.training
    features = encode_all(encoders, task, training, piece, comm)
    transform = fit_projection(
        [rows.numpy() for rows in features],
        [video.times for video in training],
        [video.seconds for video in training],
        task.rescaling,
        {str(stream): width for stream, width in encoders.features.items()},
    )
    objective = build_objective(task, transform)
    warm_up(objective, features, task)
    if comm is None or comm.Get_rank() == 0:
        arrays = transform.to_arrays()
        keep(
            {
                "transform": {name: torch.from_numpy(np.array(a)) for name, a in arrays.items()},
                "objective": objective.state_dict(),
            }
        )
    return objective, transform


class _Head(nn.Module):
    """The loss of a video's features, with all that it needs inside."""

    def __init__(self, objective: Objective, target: Target) -> None:
        super().__init__()
        self.objective, self.target = objective, target

    def forward(self, features: Tensor) -> Tensor:
        return self.objective.loss(features, self.target, self.target.labels)


def plan_tuning(task: Task, encoders: StreamEncoders) -> MemoryPlan:
    """Return the plan of a tuning; it does not depend on what the pictures show.

    Pictures are held in memory where that takes little of the budget; the plan's `picture_bytes`
    are above 0 then.

    Raises:
        InputError: The budget is too small; the line names the least.
    """
    settings = task.settings
    widths = {str(stream): width for stream, width in encoders.features.items()}
    objective = build_objective(task, unfitted(task.rescaling, widths))
    longest = max(task.videos.training, key=lambda video: len(video.times))
    head = _Head(objective, objective.target(longest))
    blank = partial(BlankFrames, len(longest.times), settings, task.store.planes)

    def planned(frames: BlankFrames) -> MemoryPlan:
        return plan_memory(
            encoders,
            head,
            frames,
            settings.memory_budget_mb,
            None if settings.keep_ratio == "auto" else settings.keep_ratio,
            way=settings.way,
            execution=settings.execution,
            sampler=settings.sampler,
            videos=len(task.videos.training),
        )

    held = blank(held=True)
    if held.nbytes <= _HELD_SHARE * settings.memory_budget_mb * MEGABYTE:
        with suppress(ValueError):  # it may fit without them
            return planned(held)
    try:
        return planned(blank(held=False))
    except ValueError as error:
        raise InputError(f"finetune: {error}") from None


def described(plan: MemoryPlan) -> str:
    """Return a plan in one line."""
    return (
        f"{plan.way}, {plan.execution} in pieces of {plan.piece}, keep ratio {plan.keep_ratio:g}: "
        f"at most {plan.expected_bytes / MEGABYTE:.0f} MB of {plan.budget_bytes / MEGABYTE:.0f} MB,"
        f" for videos of up to {plan.longest} snippets"
    )
