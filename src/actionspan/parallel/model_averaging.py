"""Ranks that train on their own and average their models now and then: AAVG (paper 003)."""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from actionspan.parallel.averaging import Learner, average
from actionspan.parallel.averaging_interval import Interval, kept, own_state, restore_own
from actionspan.parallel.counting import CountingCommunicator
from actionspan.parallel.member import Member, broadcast
from actionspan.parallel.ring import ring_allreduce


class AveragingReplica(Member, ABC):
    """A learner that makes its own steps, and whose model is averaged every K of them.

    All ranks make the same number of steps; one whose share of a batch is empty makes it without
    gradients, which leaves its model as it is.

    Attributes:
        whole_state: Whether optimiser state and buffers are averaged too.
    """

    sums_gradients = False

    def _check(self) -> None:
        if self.settings.wire != "float32" or self.settings.overlap:
            raise ValueError(
                f"exchange {self.name} averages models in float32, between steps: "
                "no wire, no overlap"
            )

    def _start(self) -> None:
        self.whole_state = self.settings.average_state
        self._interval = Interval(self.settings.averaging_steps)
        self._averaged_at = time.monotonic()

    @property
    def averages(self) -> int:
        """Return how often the models were averaged."""
        return self._interval.averages

    def step(self) -> None:
        """Update the model by this rank's gradients, and average when it is time."""
        begun = time.perf_counter()
        self.optimiser.step()
        self._steps += 1
        self.seconds["update"] += time.perf_counter() - begun
        if self._interval.step():
            self._average()

    def synchronise(self) -> None:
        """Average, if there was a step since the last time: all ranks end with one model.

        Unless the whole state is averaged, each has its own buffers still; see `first_buffers`.
        """
        if self._interval.since:
            self._average()

    @contextlib.contextmanager
    def first_buffers(self) -> Iterator[None]:
        """Let the model have rank 0's buffers in a block, e.g. in validation; all ranks enter it.

        Where buffers are averaged they are alike, and nothing is done.
        """
        if self.whole_state:
            yield
            return
        buffers = list(self.model.buffers())
        with kept(buffers):
            begun = time.perf_counter()
            with self.watchdog.waiting("the buffers of the model"):
                broadcast(buffers, self.comm)
            self.seconds["exchange"] += time.perf_counter() - begun
            yield

    def own_state(self) -> list[dict[str, Any]] | None:
        """Return, on rank 0, what ranks do not share after `synchronise`, for a checkpoint.

        It is each rank's optimiser state and buffers where only parameters are averaged; None on
        other ranks, and where there is no such state.
        """
        if self.whole_state:
            return None
        begun = time.perf_counter()
        with self.watchdog.waiting("the state of the learners"):
            state = self.comm.gather(own_state(self.model, self.optimiser), root=0)
        self.seconds["exchange"] += time.perf_counter() - begun
        return state if self.rank == 0 else None

    def restore_own(self, state: list[dict[str, Any]] | None) -> None:
        """Go back to what `own_state` returned; all ranks call it, and rank 0's state counts."""
        with self.watchdog.waiting("the state of the learners"):
            if self.comm.bcast(state is not None, root=0):
                own = self.comm.scatter(state, root=0)
                restore_own(self.model, self.optimiser, own)

    def report(self) -> dict[str, Any]:
        """Return how often models were averaged."""
        return {"averages": self.averages}

    def close(self) -> None:
        """Stop watching."""
        self.watchdog.close()
        self.comm.Free()

    def _average(self) -> None:
        begun = time.perf_counter()
        # learners that meet rarely may drift apart by more than a deadline of exchanges
        own = time.monotonic() - self._averaged_at
        with self.watchdog.waiting(f"the models after step {self._steps}", patience=own):
            self._exchange()
        self._averaged_at = time.monotonic()
        self._interval.averaged()
        taken = time.perf_counter() - begun
        self.seconds["exchange"] += taken
        self.seconds["communication"] += taken

    @abstractmethod
    def _exchange(self) -> None:
        """Average the models of all ranks."""


class ModelAveraging(AveragingReplica):
    """AAVG's learner: the models are averaged by the ring.

    All ranks end with the same bits, which are those of `InProcessAveraging`.
    """

    name = "aavg"

    def _start(self) -> None:
        super()._start()
        self._ring = CountingCommunicator(self.comm.Dup())

    @property
    def sent_bytes(self) -> int:
        """Return how many bytes this rank has sent in averages."""
        return self._ring.total_sent()

    def report(self) -> dict[str, Any]:
        """Return how often models were averaged and how many bytes this rank sent for it."""
        return {**super().report(), "sent_bytes": self.sent_bytes}

    def close(self) -> None:
        """Stop watching."""
        super().close()
        self._ring.Free()

    def _exchange(self) -> None:
        average([Learner(self.model, self.optimiser)], self._total, self.workers, self.whole_state)

    def _total(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            ring_allreduce(tensor, self._ring, cuda_aware=self.settings.cuda_aware)
