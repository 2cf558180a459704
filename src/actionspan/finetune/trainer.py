"""Epochs of a tuning: images in, one backward pass a video, scores of held-out videos out."""

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from actionspan.finetune.encoders import StreamEncoders
from actionspan.finetune.objectives import Objective, backward
from actionspan.finetune.precision import mean_average_precision
from actionspan.finetune.preparation import Task, batches_of, encode
from actionspan.finetune.snippets import SnippetFrames
from actionspan.finetune.videos import HeldFrames, TunedVideo, frames_of, held
from actionspan.jobs.determinism import seed_torch
from actionspan.jobs.memory import DeviceMemory
from actionspan.jobs.prefetch import prefetched
from actionspan.memory.counting import saved_bytes
from actionspan.memory.planning import MemoryPlan
from actionspan.memory.sampling import kept_count
from actionspan.training.stopwatch import Stopwatch
from actionspan.training.trainer import Row, Trainer

_MEGA = 1e6


class Tuned(nn.Module):
    """Encoders in the way they are trained, and the objective above their fixed projection."""

    def __init__(self, way: nn.Module, objective: Objective, plan: MemoryPlan) -> None:
        super().__init__()
        self.way, self.objective, self.plan = way, objective, plan

    @property
    def encoders(self) -> StreamEncoders:
        """The encoders of the streams."""
        return cast(StreamEncoders, self.way.encoder)


@dataclass(kw_only=True)
class TuningTrainer(Trainer[Tuned]):
    """Encoders in training with the objective above them; ranks share the videos of a batch."""

    task: Task
    held_before: int  # bytes of the device's memory, before the encoders were built

    rates = "finetune.encoder_rate and temporal_rate"

    def __post_init__(self) -> None:
        self.settings = self.task.settings
        self.device = next(self.model.parameters()).device
        target = self.model.objective.target
        videos = itertools.chain(*self.task.videos.lists)
        self.targets = {video.name: target(video).to(self.device) for video in videos}
        self.memory = DeviceMemory(self.device)
        self.hold = self.model.plan.picture_bytes > 0

    def train_epoch(self, epoch: int) -> Row:
        """Go once through the training videos; return columns of the log."""
        # 1. the steps, and images of this rank's videos
        replica, stopwatch = self.replica, Stopwatch()
        self.memory.forget_peak()
        steps = batches_of(len(self.task.videos.training), self.settings, epoch)
        shares = [replica.share(len(chosen)) for chosen in steps]
        ready = prefetched(self._pictures(steps, shares, epoch), ahead=1)
        # 2. learn
        loss, saved = 0.0, 0
        with contextlib.closing(ready):
            waiting = stopwatch.loop(ready, "reading", "learning", replica)
            for step, (chosen, own) in enumerate(zip(steps, shares, strict=True)):
                seed_torch(self.settings.seed, epoch, step, replica.rank)  # dropout
                with saved_bytes(self.model) if step == 0 else contextlib.nullcontext() as counted:
                    part = self._step(chosen, own, step, epoch, waiting)
                # a part of the batch's loss, or the loss of this rank's share
                loss += part * len(chosen if replica.sums_gradients else chosen[own])
                saved = counted.total if counted is not None else saved
                with stopwatch.part("update", replica):
                    replica.step()
            for _ in waiting:
                raise AssertionError("more images than videos")
        # 3. collect the columns
        replica.synchronise()
        gathered = replica.gather(loss, f"the losses of epoch {epoch}")
        spent = stopwatch.report()
        return {
            "encoder_rate": self.settings.encoder_rate,
            "training_loss": sum(gathered) / len(self.task.videos.training),
            "kept_snippets": self._kept(),
            "saved_mb": saved / _MEGA,
            # a rank that only serves has none
            "reading_seconds": spent.get("reading_seconds", 0.0),
            "learning_seconds": spent.get("learning_seconds", 0.0),
        }

    def _kept(self) -> int:
        """Return of how many snippets an epoch computes the gradient."""
        plan = self.model.plan
        assert isinstance(plan.keep_ratio, float)
        counts = [len(video.times) for video in self.task.videos.training]
        # a way that draws no snippets has a ratio of 1
        kept = sum(kept_count(count, plan.keep_ratio) for count in counts)
        return 0 if plan.way == "frozen" else kept

    def _pictures(
        self, steps: list[list[int]], shares: list[slice], epoch: int
    ) -> Iterator[HeldFrames | SnippetFrames]:
        """Yield the images of this rank's videos of an epoch, in the order of its steps."""
        before = 0
        for step, own in zip(steps, shares, strict=True):
            for place in range(*own.indices(len(step))):
                video = self.task.videos.training[step[place]]
                frames = frames_of(self.task.store, video, self.settings, (epoch, before + place))
                yield held(frames) if self.hold else frames
            before += len(step)

    def _step(self, chosen: list[int], own: slice, step: int, epoch: int, pictures: Any) -> float:
        """Run the backward passes of this rank's share of a batch; return its part of the loss."""
        self.replica.optimiser.zero_grad()
        videos = [self.task.videos.training[place] for place in chosen]
        if not videos[own]:
            return 0.0
        shared = videos if self.replica.sums_gradients else videos[own]
        batch = torch.cat([self.targets[video.name].labels for video in shared])
        # a video's place in the epoch is the same on any rank
        first = step * self.settings.batch_size + own.start
        features = self._features(videos[own], first, epoch, pictures)
        targets = [self.targets[video.name] for video in videos[own]]
        return backward(self.model.objective, targets, features, batch)

    def _features(
        self, videos: list[TunedVideo], first: int, epoch: int, pictures: Any
    ) -> Iterator[Tensor]:
        """Yield the features of each video, which has its backward pass before the next one."""
        generator = torch.Generator()
        for number, video in enumerate(videos, start=1):
            frames = next(pictures)
            self._make_room()
            # which snippets are kept follows from the video's place in the epoch
            seed_torch(self.settings.seed, epoch, first + number - 1, 1, generator=generator)
            last = number == len(videos)
            with contextlib.nullcontext() if last else self.replica.accumulating():
                with self._autocast():
                    features = self.model.way(frames, generator=generator, key=video.name)
                yield features.float()

    def _make_room(self) -> None:
        """Give freed memory back where another video's step might pass the budget with it."""
        plan = self.model.plan
        if self.memory.held() - self.held_before + plan.step_bytes > plan.budget_bytes:
            self.memory.give_back()

    def _autocast(self) -> Any:
        half = self.settings.precision != "float32"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=half)

    def validate(self) -> Row:
        """Return the average precision on the videos that choose the epoch, and on validation."""
        videos, every = self.task.videos, self.settings.score_every
        due = every and (self.epoch + 1) % every == 0
        return {
            "choosing_precision": self._precision(videos.choosing),
            "validation_precision": self._precision(videos.validation) if due else math.nan,
            "peak_mb": max(0, self.memory.peak() - self.held_before) / _MEGA,
        }

    def score(self, row: Row) -> float:
        """Return the average precision on the videos that choose the epoch."""
        return row["choosing_precision"]

    def _precision(self, videos: Sequence[TunedVideo]) -> float:
        """Return the mean average precision on videos; NaN where there is none."""
        found = self._scored(videos).values()
        if not found:
            return math.nan
        scores, right = (torch.cat(each) for each in zip(*found, strict=True))
        return mean_average_precision(scores, right)

    def validation_scores(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Return the scores and labels of each validation video, by the weights that are kept."""
        with self.replica.first_buffers():
            self.model.load_state_dict(self.weights())
            return self._scored(self.task.videos.validation)

    @torch.no_grad()
    def _scored(self, videos: Sequence[TunedVideo]) -> dict[str, tuple[Tensor, Tensor]]:
        """Return scores and labels by video; ranks share the videos."""
        replica, model = self.replica, self.model
        model.eval()
        own = {}
        for video in videos[replica.rank :: replica.size]:
            with self._autocast():
                features = encode(model.encoders, self.task, video, model.plan.piece)
            scores, right = model.objective.scores(features, self.targets[video.name])
            own[video.name] = (scores.float().cpu(), right.cpu())
        every: dict[str, tuple[Tensor, Tensor]] = {}
        for part in replica.gather(own, "the scores of videos"):
            every |= part
        return {video.name: every[video.name] for video in videos}
