"""When learners average their models, and what each keeps, on ranks and in one process alike."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from actionspan.parallel.averaging import Learner
from actionspan.parallel.member import timed
from actionspan.parallel.settings import ParallelSettings


class Averager(ABC):
    """Learners that make their own steps; the models are averaged every K of them.

    Attributes:
        learners: Those of this process.
        whole_state: Whether optimiser state and buffers are averaged too.
        averages: Number of averages so far.
    """

    sums_gradients = False
    seconds: dict[str, float]

    def _begin(self, learners: Sequence[Learner], settings: ParallelSettings) -> None:
        self.learners, self.whole_state = learners, settings.average_state
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
