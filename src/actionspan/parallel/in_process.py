"""Learners of one process that average their models: AAVG without ranks."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from actionspan.parallel.averaging import Learner, average, ring_sum
from actionspan.parallel.averaging_interval import Interval, kept, own_state, restore_own
from actionspan.parallel.member import share
from actionspan.parallel.settings import ParallelSettings


class InProcessAveraging:
    """P learners in this process, with the same bits as P ranks of `ModelAveraging`.

        averaging = InProcessAveraging(models, optimisers, settings)
        for batch in batches:
            for learner, rows in zip(averaging.learners, averaging.shares(len(batch))):
                (forward and backward of learner.model on batch[rows])
            averaging.step()
        averaging.synchronise()

    Args:
        models: One of each learner, alike; all begin with the values of the first.
        optimisers: One of each learner's parameters, alike.
        settings: `averaging_steps` and `average_state`.

    Attributes:
        workers: How many learners there are.
        learners: The models with their optimisers.
        averages: How often they were averaged so far.
        seconds: As of a `Replica`; it waits for nobody, and `communication` is averaging.

    Raises:
        ValueError: There is no model, or not an optimiser for each.
    """

    rank, size = 0, 1
    worker: int | None = 0
    sums_gradients = False

    def __init__(
        self,
        models: Sequence[nn.Module],
        optimisers: Sequence[torch.optim.Optimizer],
        settings: ParallelSettings,
    ) -> None:
        if not models or len(models) != len(optimisers):
            raise ValueError(f"{len(models)} models and {len(optimisers)} optimisers: one of each")
        self.optimiser = optimisers[0]
        self.learners = [Learner(*pair) for pair in zip(models, optimisers, strict=True)]
        self.workers = len(self.learners)
        self.whole_state = settings.average_state
        self.seconds = {"exchange": 0.0, "communication": 0.0, "update": 0.0}
        self._interval = Interval(settings.averaging_steps)
        for model in models[1:]:
            model.load_state_dict(models[0].state_dict())

    @property
    def averages(self) -> int:
        """Return how often the models were averaged."""
        return self._interval.averages

    def share(self, count: int) -> slice:
        """Return all rows of a batch: all learners are in this process."""
        return slice(0, count)

    def shares(self, count: int) -> list[slice]:
        """Return which rows of a batch of `count` are whose; perhaps none."""
        return [share(count, learner, self.workers) for learner in range(self.workers)]

    def step(self) -> None:
        """Update all models, each by its own gradients, and average them when it is time."""
        begun = time.perf_counter()
        for learner in self.learners:
            learner.optimiser.step()
        self.seconds["update"] += time.perf_counter() - begun
        if self._interval.step():
            self._average()

    def synchronise(self) -> None:
        """Average, if there was a step since the last time: all learners end with one model."""
        if self._interval.since:
            self._average()

    @contextlib.contextmanager
    def first_buffers(self) -> Iterator[None]:
        """Let all models have the buffers of the first in a block, e.g. in validation.

        Where buffers are averaged they are alike, and nothing is done.
        """
        if self.whole_state:
            yield
            return
        first, *others = (list(learner.model.buffers()) for learner in self.learners)
        with kept([one for own in others for one in own]):
            for own in others:
                for one, value in zip(own, first, strict=True):
                    one.copy_(value)
            yield

    def own_state(self) -> list[dict[str, Any]] | None:
        """Return what learners do not share after `synchronise`, for a checkpoint; None: nothing.

        It is each learner's optimiser state and buffers where only parameters are averaged; the
        tensors are the learners' own, not copies.
        """
        if self.whole_state:
            return None
        return [own_state(*learner) for learner in self.learners]

    def restore_own(self, state: list[dict[str, Any]] | None) -> None:
        """Go back to what `own_state` returned."""
        if state is not None:
            for learner, own in zip(self.learners, state, strict=True):
                restore_own(*learner, own)

    def gather(self, value: Any, what: str) -> list[Any]:
        """Return the value of the only process."""
        return [value]

    def report(self) -> dict[str, Any]:
        """Return how often models were averaged, and that no byte was sent for it."""
        return {"averages": self.averages, "sent_bytes": 0}

    def close(self) -> None:
        """Do nothing: there are no threads."""

    def _average(self) -> None:
        begun = time.perf_counter()
        average(self.learners, ring_sum, self.workers, self.whole_state)
        self._interval.averaged()
        self.seconds["communication"] += time.perf_counter() - begun
