"""Ranks that train on their own and average their models now and then: AAVG (paper 003)."""

import time
from abc import abstractmethod
from typing import Any

from torch import Tensor

from actionspan.parallel.averager import Averager
from actionspan.parallel.averaging import Learner, average
from actionspan.parallel.counting import CountingCommunicator
from actionspan.parallel.member import Member, broadcast
from actionspan.parallel.ring import ring_allreduce


class AveragingReplica(Averager, Member):
    """A learner on each rank; all ranks average their models every K steps.

    All ranks make the same number of steps. A rank whose share of a batch is empty makes the step
    without gradients, which leaves its model as it is.
    """

    def _check(self) -> None:
        if self.settings.wire != "float32" or self.settings.overlap:
            raise ValueError(
                f"exchange {self.name} averages models in float32, between steps: "
                "no wire, no overlap"
            )

    def _start(self) -> None:
        self._begin([Learner(self.model, self.optimiser)], self.settings)
        self._averaged_at = time.monotonic()

    def own_state(self) -> list[dict[str, Any]] | None:
        """Return, on rank 0, each rank's optimiser state and buffers; None where averaged."""
        if self.whole_state:
            return None
        with self._waiting("the state of the learners"):
            # in host memory: rank 0 would unpack what is on a GPU on a GPU that is not its own
            own = _on_host(self.learners[0].own_state())
            state: list[dict[str, Any]] | None = self.comm.gather(own, root=0)
        return state

    def restore_own(self, state: list[dict[str, Any]] | None) -> None:
        """Go back to an `own_state`; all ranks call it, and rank 0's state counts."""
        with self.watchdog.waiting("the state of the learners"):
            if self.comm.bcast(state is not None, root=0):
                self.learners[0].restore_own(self.comm.scatter(state, root=0))

    def report(self) -> dict[str, Any]:
        """Return the number of averages."""
        return {"averages": self.averages}

    def _share_buffers(self) -> None:
        with self._waiting("the buffers of the model"):
            broadcast(self.model.buffers(), self.comm)

    def _average_models(self) -> None:
        # learners that meet rarely may drift apart by more than a deadline of exchanges
        own = time.monotonic() - self._averaged_at
        with self._waiting(f"the models after step {self._steps}", "communication", patience=own):
            self._exchange()
        self._averaged_at = time.monotonic()

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
        """Bytes that this rank sent for averages."""
        return self._ring.total_sent()

    def report(self) -> dict[str, Any]:
        """Return the number of averages and the bytes that this rank sent for them."""
        return {**super().report(), "sent_bytes": self.sent_bytes}

    def close(self) -> None:
        """Stop watching."""
        super().close()
        self._ring.Free()

    def _exchange(self) -> None:
        average(self.learners, self._total, self.workers, self.whole_state)

    def _total(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            ring_allreduce(tensor, self._ring, cuda_aware=self.settings.cuda_aware)


def _on_host(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {key: _on_host(value) for key, value in state.items()}
    return [_on_host(value) for value in state] if isinstance(state, list) else state
