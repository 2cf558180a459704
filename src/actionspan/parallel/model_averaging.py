"""Learners that train on their own and average their models now and then: AAVG (paper 003)."""

import contextlib
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.parallel.averaging import Learner, average, ring_sum, trained
from actionspan.parallel.communicator import CountingCommunicator
from actionspan.parallel.exchange import TorchAllreduce
from actionspan.parallel.member import Member, Replica, broadcast, share, timed
from actionspan.parallel.ring import ring_allreduce
from actionspan.parallel.settings import ParallelSettings


class _Averager(Replica, ABC):
    """Learners that make their own steps; the models are averaged every K of them.

    Attributes:
        whole_state: Whether optimiser state and buffers are averaged too.
        averages: Number of averages so far.
    """

    sums_gradients = False

    def _begin(self, settings: ParallelSettings) -> None:
        self.whole_state = settings.average_state
        self._every, self._steps, self._averaged, self.averages = settings.averaging_steps, 0, 0, 0

    def step(self) -> None:
        """Update each model by its own gradients, and average all after every K steps."""
        with timed(self.seconds, "update"):
            for learner in self.learners:
                learner.optimiser.step()
        self._steps += 1
        if self._steps - self._averaged == self._every:
            self._average()

    def synchronise(self) -> None:
        """Average after steps that have not been averaged yet: all learners end with one model.

        Unless the complete state is averaged, each keeps its own buffers; see `first_buffers`.
        """
        if self._steps > self._averaged:
            self._average()

    @contextlib.contextmanager
    def first_buffers(self) -> Iterator[None]:
        """Give all models the first learner's buffers in a block, e.g. in validation.

        All ranks enter it. Where buffers are averaged they are alike, and nothing is done.
        """
        if self.whole_state:
            yield
            return
        buffers = [buffer for learner in self.learners for buffer in learner.model.buffers()]
        before = [buffer.clone() for buffer in buffers]
        try:
            self._share_buffers()
            yield
        finally:
            for buffer, value in zip(buffers, before, strict=True):
                buffer.detach().copy_(value)

    def _average(self) -> None:
        self._average_models()
        self._averaged, self.averages = self._steps, self.averages + 1

    @abstractmethod
    def _share_buffers(self) -> None:
        """Give all models the buffers of the first learner."""

    @abstractmethod
    def _average_models(self) -> None:
        """Average all learners' models and note the seconds."""


class InProcessAveraging(_Averager):
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
        averages: Number of averages so far.

    Raises:
        ValueError: No model is given, or not one optimiser for each.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        optimisers: Sequence[torch.optim.Optimizer],
        settings: ParallelSettings,
    ) -> None:
        if not models or len(models) != len(optimisers):
            raise ValueError(f"{len(models)} models and {len(optimisers)} optimisers: one of each")
        super().__init__(models[0], optimisers[0])
        self.learners = list(map(Learner, models, optimisers))
        self._begin(settings)
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


class ModelAveraging(_Averager, Member):
    """AAVG's learner on each rank; the ring averages all ranks' models every K steps.

    All ranks make the same number of steps, and end with the same bits, as `InProcessAveraging`
    does. A rank with an empty share of a batch makes the step without gradients, which leaves its
    model as it is.
    """

    name = "aavg"

    def _check(self) -> None:
        if self.settings.wire != "float32" or self.settings.overlap:
            raise ValueError(
                f"exchange {self.name} averages models in float32, between steps: "
                "no wire, no overlap"
            )

    def _start(self) -> None:
        self._begin(self.settings)
        self._averaged_at = time.monotonic()
        self._ring = CountingCommunicator(self.comm.Dup())

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank sent for averages."""
        return self._ring.total_sent()

    def own_state(self) -> list[dict[str, Any]] | None:
        """Return, on rank 0, each rank's optimiser state and buffers; None where averaged."""
        if self.whole_state:
            return None
        with self._waiting("the state of the learners"):
            # in host memory: rank 0 would unpack a GPU tensor on a GPU that is not its own
            own = _on_host(self.learners[0].own_state())
            state: list[dict[str, Any]] | None = self.comm.gather(own, root=0)
        return state

    def restore_own(self, state: list[dict[str, Any]] | None) -> None:
        """Go back to an `own_state`; all ranks call it, and rank 0's state counts."""
        with self.watchdog.waiting("the state of the learners"):
            if self.comm.bcast(state is not None, root=0):
                self.learners[0].restore_own(self.comm.scatter(state, root=0))

    def report(self) -> dict[str, Any]:
        """Return the number of averages and the bytes that this rank sent for them."""
        return {"averages": self.averages, "sent_bytes": self.sent_bytes}

    def close(self) -> None:
        """Stop watching."""
        super().close()
        self._ring.Free()

    def _share_buffers(self) -> None:
        with self._waiting("the buffers of the model"):
            broadcast(self.model.buffers(), self.comm)

    def _average_models(self) -> None:
        # learners that meet rarely may drift apart by more than a deadline of exchanges
        own = time.monotonic() - self._averaged_at
        with self._waiting(f"the models after step {self._steps}", "communication", patience=own):
            self._exchange()
        self._averaged_at = time.monotonic()

    def _exchange(self) -> None:
        """Average the models of all ranks."""
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


class PeriodicAveraging(ModelAveraging):
    """Ranks with parameters that torch averages, over gloo.

    torch leaves optimiser state and buffers to each rank, whatever `average_state` is. It skips
    parameters without a gradient, and fails where only some ranks have none; so during the average
    all have a gradient, of zero where there was none.
    """

    name = "periodic"

    def _start(self) -> None:
        super()._start()
        self.whole_state = False
        self._group = TorchAllreduce(self.comm, "gloo", self.settings.stall_seconds)
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

        with warnings.catch_warnings():
            # K is counted here, since `synchronise` averages too; torch averages at every call, and
            # warns that this costs as much as averaging gradients
            warnings.simplefilter("ignore")
            self._averager = PeriodicModelAverager(period=1)

    def report(self) -> dict[str, Any]:
        """Return the number of averages; torch does not count its messages."""
        return {"averages": self.averages}

    def close(self) -> None:
        """Stop watching and tear the process group down."""
        super().close()
        self._group.close()

    def _exchange(self) -> None:
        parameters = trained(self.optimiser)
        without = [parameter for parameter in parameters if parameter.grad is None]
        for parameter in without:
            parameter.grad = torch.zeros_like(parameter)
        with self._group.exchanging():
            self._averager.average_parameters(parameters)
        for parameter in without:
            parameter.grad = None


class AdaptiveBatch:
    """The batch size of each learner: lines 13 to 21 of algorithm 1.

    Args:
        size: Initial batch size; the attribute of this name is the current one.
        margin: b1 of the paper: the batch grows at accuracies below `margin` times the best.
        growth: b2 of the paper: factor by which the batch grows; 1 keeps it constant.
        cap: Largest batch size.

    Attributes:
        best: The best accuracy so far.

    Raises:
        ValueError: A value is out of range.
    """

    def __init__(self, size: int, margin: float = 1.0, growth: float = 2.0, cap: int = 576) -> None:
        if not 1 <= size <= cap:
            raise ValueError(f"batch size {size}: from 1 to the cap, {cap}")
        if not 0 <= margin < math.inf:
            raise ValueError(f"margin {margin}: a number, at least 0")
        if not 1 <= growth < math.inf:
            raise ValueError(f"growth {growth}: a number, at least 1")
        self.size, self.margin, self.growth, self.cap = size, margin, growth, cap
        self.best = 0.0

    def update(self, accuracy: float) -> None:
        """Take a validation accuracy into account; with margin 1, a tie does not grow the batch."""
        if math.isnan(accuracy):
            raise ValueError("the validation accuracy is not a number")
        if accuracy < self.best * self.margin:
            self.size = min(self.cap, math.ceil(self.size * self.growth))
        self.best = max(self.best, accuracy)

    def state(self) -> dict[str, float]:
        """Return what changes, for a checkpoint."""
        return {"size": self.size, "best": self.best}

    def restore(self, state: dict[str, float]) -> None:
        """Go back to a `state`."""
        self.size, self.best = int(state["size"]), float(state["best"])
