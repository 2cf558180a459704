"""Settings of `actionspan stream`."""

from dataclasses import dataclass
from typing import Literal

from actionspan.settings import Checked, option

Policy = Literal["block", "newest"]
Executor = Literal["sequential", "thread", "process"]


@dataclass(frozen=True, kw_only=True)
class StreamSettings(Checked):
    """How a stream is read, how its work is shared out, and when it ends."""

    policy: Literal["auto", "block", "newest"] = option(
        "auto",
        "when frames come faster than they are worked on: block makes the source wait, newest "
        "drops whole snippets and says which; auto: block for files, newest for live sources",
    )
    rate: Literal["full", "real"] = option(
        "full", "play a file as fast as the work allows, or at its own rate, like a camera"
    )
    delay: float = option(
        2.0,
        "a proposal is sent at most this long after its end is seen",
        unit="seconds",
        least=0,
    )
    executor: Executor = option(
        "thread", "what runs the stages; all give the same results, to the bit"
    )
    stages: int = option(
        2, "parts of equal work that flow and encoders are cut into, each for one core", least=1
    )
    threads: int = option(1, "cores of a single stage (executor sequential)", least=1)
    queue: int = option(
        8, "snippets that wait for the first stage at most; more block, or are dropped", least=1
    )
    duration: float | None = option(
        None, "end after so much of the stream; without it, at its end", unit="seconds", above=0
    )
    state_seconds: float = option(
        10.0, "how often what --resume needs is written", unit="seconds", above=0
    )
    open_seconds: float = option(
        10.0, "how long opening a live source may take", unit="seconds", above=0
    )
    read_seconds: float = option(
        10.0, "silence after which a live source is opened again", unit="seconds", above=0
    )
    reconnect_seconds: float = option(
        300.0,
        "how long a lost live source is tried again before the stream ends",
        unit="seconds",
        least=0,
    )

    def policy_for(self, *, live: bool) -> Policy:
        """Return the policy for a source.

        Raises:
            ValueError: Nearly all of a file would be dropped.
        """
        if self.policy == "newest" and not live and self.rate != "real":
            raise ValueError(
                "policy newest: a file at full speed would be dropped nearly whole; add --rate real"
            )
        if self.policy == "auto":
            return "newest" if live else "block"
        return self.policy


@dataclass(frozen=True, kw_only=True)
class LearningSettings(Checked):
    """How the network learns while a stream plays (with --learn)."""

    label_seconds: float = option(
        2.0, "labels of an instance are known so long after its end", unit="seconds", least=0
    )
    learning_window: int = option(
        128, "newest labelled snippets that each step learns from", unit="snippets", least=8
    )
    learning_rate: float = option(1e-4, "AdamW's step size", above=0)
