"""Learners of one process that average their models: AAVG without ranks."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from actionspan.parallel.averager import Averager
from actionspan.parallel.averaging import Learner, average, ring_sum
from actionspan.parallel.member import Replica, share, timed
from actionspan.parallel.settings import ParallelSettings


class InProcessAveraging(Averager, Replica):
    """P learners in this process, with the same bits as P ranks of `ModelAveraging`.

        averaging = InProcessAveraging(models, optimisers, settings)
        for batch in batches:
            for learner, rows in zip(averaging.learners, averaging.shares(len(batch))):
                (forward and backward of learner.model on batch[rows])
            averaging.step()
        averaging.synchronise()

    Args:
        models: One a learner, of the same structure; all start with the values of the first.
        optimisers: One a learner, of its parameters, with the same settings.
        settings: `averaging_steps` and `average_state` are used.

    Attributes:
        workers: Number of learners.
        learners: The models with their optimisers.
        averages: Number of averages so far.

    Raises:
        ValueError: There is no model, or not one optimiser for each.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        optimisers: Sequence[torch.optim.Optimizer],
        settings: ParallelSettings,
    ) -> None:
        if not models or len(models) != len(optimisers):
            raise ValueError(f"{len(models)} models and {len(optimisers)} optimisers: one of each")
        super().__init__(optimisers[0])
        self._begin([Learner(*pair) for pair in zip(models, optimisers, strict=True)], settings)
        self.workers = len(self.learners)
        for model in models[1:]:
            model.load_state_dict(models[0].state_dict())

    def share(self, count: int) -> slice:
        """Return all rows of a batch: all learners are in this process."""
        return slice(0, count)

    def shares(self, count: int) -> list[slice]:
        """Return each learner's rows of a batch of `count`; perhaps none."""
        return [share(count, learner, self.workers) for learner in range(self.workers)]

    def own_state(self) -> list[dict[str, Any]] | None:
        """Return each learner's optimiser state and buffers; None where they are averaged."""
        return None if self.whole_state else [learner.own_state() for learner in self.learners]

    def restore_own(self, state: list[dict[str, Any]] | None) -> None:
        """Go back to an `own_state`."""
        if state is not None:
            for learner, own in zip(self.learners, state, strict=True):
                learner.restore_own(own)

    def report(self) -> dict[str, Any]:
        """Return the number of averages, and that no byte was sent for them."""
        return {"averages": self.averages, "sent_bytes": 0}

    def _share_buffers(self) -> None:
        first, *others = (list(learner.model.buffers()) for learner in self.learners)
        for own in others:
            for buffer, value in zip(own, first, strict=True):
                buffer.detach().copy_(value)

    def _average_models(self) -> None:
        with timed(self.seconds, "communication"):
            average(self.learners, ring_sum, self.workers, self.whole_state)
