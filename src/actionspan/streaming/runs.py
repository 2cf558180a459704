"""The interface of what runs the stages of a pipeline."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from actionspan.streaming.messages import Answer, Message
from actionspan.streaming.stage import Stage


class Runs(ABC):
    """What runs the stages: the same messages, whoever does."""

    stages: Sequence[Stage] = ()  # those in this process

    @abstractmethod
    def feed(self, arriving: Message | None, target: Message | None) -> None:
        """Begin a step: the first stage gets a sample, the last the target of what it holds."""

    @abstractmethod
    def reply(self) -> Answer | None:
        """Wait for the answer of the oldest step that was not asked for; None: it had none.

        Raises:
            StageError: A stage failed or died, or gave no sign of life for `stall_seconds`.
        """

    @abstractmethod
    def ready(self, timeout: float) -> bool:
        """Return whether the oldest step has its answer; wait at most `timeout` seconds for it."""

    def train(self, stage: int, training: bool) -> None:
        """Set the mode of a stage."""
        self.stages[stage].train(training)

    @abstractmethod
    def states(self) -> list[dict[str, Any]]:
        """Return the state of each stage, with the messages on their way to it."""

    @abstractmethod
    def load(self, states: list[dict[str, Any]]) -> None:
        """Go on from `states`."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until all stages have done the steps begun; the caller may read weights then."""

    def reports(self) -> list[dict[str, Any]]:
        """Return what each stage has done so far."""
        return [stage.report() for stage in self.stages]

    def processes(self) -> list[int]:
        """Return the process ids of the stages that have a process of their own."""
        return []

    @abstractmethod
    def close(self, *, failed: bool = False) -> None:
        """End what runs; `failed`: at once, without doing what was begun."""
