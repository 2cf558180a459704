"""A network in stages that work on successive samples at once and learn at every one (PARTIME).

time ->      0    1    2    3    4
stage 1     x0   x1   x2   x3   x4
stage 2          x0   x1   x2   x3      forward: one stage a step
stage 3               x0   x1   x2      its loss at step 2 ...
gradient of x0        3    2    1       ... reaches stage 1 at step 4, which holds x4
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from actionspan.streaming.errors import StageError
from actionspan.streaming.executors import parts_of_pipeline, start
from actionspan.streaming.learning import (
    Clip,
    Loss,
    MakeOptimiser,
    MakeSchedule,
    drain_steps,
    learning_of_stages,
)
from actionspan.streaming.messages import (
    Answer,
    Form,
    Message,
    Value,
    check_form,
    cloned,
    message_of,
)
from actionspan.streaming.stage import Module, Options
from actionspan.streaming.state import plain, revived, revived_stage

FORMAT = "actionspan pipeline 1"
_MOST_CREDITS = 64  # what waits in sockets must fit into them


class Pipeline:
    """Stages that work on successive samples at the same time.

    Without `loss` it infers, and a sample moves on as soon as a stage has done it. With `loss` it
    learns: at step t stage h of D (from 0) holds sample t - h, and all stages update their weights
    at every step. On CPU every executor gives the same bits. The modules given are the ones that
    learn; read or change them only between steps, after `wait`. The state of a stage from sample
    to sample goes into buffers; autocast and inference mode of the caller do not reach it.

    Args:
        stages: Modules, or callables on tensors, in order; each takes the output of the one before,
            a tensor or a tuple of tensors.
        executor: `sequential`, `thread` or `process` on CPU; `stream` or `graph` on CUDA.
        loss: Takes the last output and the target and returns a scalar.
        optimiser: Makes an optimiser of a list of parameters; or one such for each stage.
        schedule: Makes a schedule of an optimiser, stepped after each update; or one for each.
        clip: Largest norm of a stage's gradient, or a function of its parameters; or one for each.
        gradients: Where Jacobians are taken; see `learning.Gradients`.
        seed: Of the random numbers of stage 0; stage h has `seed + h`.
        threads: Of torch in each stage; with another number, sums have another order.
        credits: Samples that may wait before the first stage, 1 to 64.
        stall_seconds: A stage that gives no sign of life for so long is an error.
        record: Whether to note when each stage worked on what, for `report`.
        devices: Of each stage (CUDA executors).

    Raises:
        ValueError: No stage, parameters shared by two stages, an unknown executor, …

    Example:
        >>> with Pipeline([torch.nn.Linear(4, 3), torch.nn.Tanh()], "thread") as pipeline:
        ...     for answer in pipeline.run(torch.ones(2, 5, 4)):
        ...         print(answer)
        Answer(index=0, output=float32 [5, 3], loss=None)
        Answer(index=1, output=float32 [5, 3], loss=None)
    """

    def __init__(
        self,
        stages: Sequence[Module],
        executor: str = "sequential",
        *,
        loss: Loss | None = None,
        optimiser: MakeOptimiser | Sequence[MakeOptimiser | None] | None = None,
        schedule: MakeSchedule | Sequence[MakeSchedule | None] | None = None,
        clip: Clip | Sequence[Clip | None] | None = None,
        gradients: str = "paper",
        seed: int = 0,
        threads: int = 1,
        credits: int = 2,
        stall_seconds: float = 60.0,
        record: bool = False,
        devices: Sequence[torch.device | str] | None = None,
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads {threads}: at least 1")
        if not 1 <= credits <= _MOST_CREDITS:
            raise ValueError(f"credits {credits}: from 1 to {_MOST_CREDITS}")
        count = self._count = len(stages)
        self._credits, self._learning = credits, loss is not None
        learning = learning_of_stages(count, loss, optimiser, schedule, clip, gradients)
        parts = parts_of_pipeline(stages, learning)
        self._mode = gradients if self._learning else ""
        options = Options(seed, threads, stall_seconds, record)
        self._drain_steps = drain_steps(count, gradients) if self._learning else 0
        self._executor = start(executor, parts, options, devices)
        self._samples = self._steps = 0  # put in; a step may have no sample
        self._asked = 0  # steps with a reply that was taken
        self._returned = 0  # answers that the caller has
        self._targets: deque[tuple[int, Message | None]] = deque()  # of the last D samples fed
        self._answers: deque[Answer] = deque()  # taken from the executor, not by the caller
        self._forms: dict[str, Form] = {}
        self._closed = False
        self._reports: list[dict[str, Any]] = []
        self._failure: StageError | None = None

    def submit(self, x: Value, y: Value | None = None) -> int:
        """Put in a sample and return its index; wait while `credits` samples wait already.

        Raises:
            ValueError: It is formed otherwise than the first of the stream.
            StageError: A stage failed.
        """
        index = self._samples
        message = self._checked("sample", index, x)
        target = None if y is None else self._checked("target of sample", index, y)
        self._targets.append((index, target))
        self._samples += 1
        self._feed(message)
        return index

    def target(self, index: int, y: Value) -> None:
        """Give the target of a sample that is still on its way: up to D - 1 steps late.

        Raises:
            ValueError: The sample has passed the last stage, or was never put in.
        """
        message = self._checked("target of sample", index, y)
        for place, (sample, _) in enumerate(self._targets):
            if sample == index:
                self._targets[place] = (index, message)
                return
        raise ValueError(
            f"target of sample {index}: too late, or no such sample; the last stage sees a sample "
            f"{self._count - 1} steps after it is put in"
        )

    def answer(self, timeout: float | None = None) -> Answer | None:
        """Return the oldest answer not yet returned; None: none came before the timeout [s].

        Without a timeout it waits as long as samples are on their way that need no further step.
        """
        until = time.monotonic() + (timeout or 0.0)
        while not self._answers and self._asked < self._steps:
            if timeout is not None:
                left = max(0.0, until - time.monotonic())
                if not self._guarded(partial(self._executor.ready, left)):
                    return None
            self._take()
        return self._pop() if self._answers else None

    def step(self, x: Value, y: Value | None = None) -> Answer | None:
        """Do one step with a sample; return the answer to the sample of D - 1 steps ago."""
        self.submit(x, y)
        if self._samples - self._returned < self._count:
            return None
        return self.answer()

    def drain(self) -> list[Answer]:
        """Return all answers to samples on their way, when the stages are empty.

        In the modes `inputs` and `stash` all gradients arrive; in the paper's the last ones, which
        find no input any more, are dropped.
        """
        for _ in range(self._drain_steps if self._samples else 0):
            self._targets.append((-1, None))
            self._feed(None)
        self.wait()
        return [self._pop() for _ in range(len(self._answers))]

    def run(self, samples: Iterable[Any]) -> Iterator[Answer]:
        """Yield the answer to every sample, in order; at the end the pipeline is drained.

        Args:
            samples: Each `x`, or when learning a pair `(x, y)`, of which y may be None.

        Answers that were not taken before, such as answers of a run that was left, come first.
        """
        ahead = self._count + 1 if self._learning else self._count + self._credits - 1
        for sample in samples:
            x, y = sample, None
            if self._learning and not isinstance(sample, Tensor):
                if len(sample) != 2:
                    raise ValueError(f"sample {self._samples}: give a pair of sample and target")
                x, y = sample
            self.submit(x, y)
            while self._steps - self._asked > ahead:
                self._take()
            while self._answers:
                yield self._pop()
        yield from self.drain()

    def wait(self) -> None:
        """Wait until every step put in is done."""
        while self._asked < self._steps:
            self._take()
        if self._learning:
            self._guarded(self._executor.settle)  # stages may still be in the last step

    def train(self, stage: int | None = None) -> None:
        """Set stages to train mode, all or one."""
        self._set_mode(stage, True)

    def eval(self, stage: int | None = None) -> None:
        """Set stages to eval mode: batch norm uses its statistics and dropout is off."""
        self._set_mode(stage, False)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume: weights, optimisers, messages, random states.

        `samples` is the number of samples put in; answers on their way or not yet taken are in
        it too. Any executor can resume from it, bitwise, and `torch.load(weights_only=True)` reads
        it.
        """
        self.wait()
        answers = [(answer.index, answer.output, answer._loss) for answer in self._answers]
        state: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "gradients": self._mode,
                "samples": self._samples,
                "returned": self._returned,
                "steps": self._steps,
                "targets": list(self._targets),
                "answers": answers,
                "forms": self._forms,
                "stages": self._guarded(self._executor.states),
            }
        )
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`, of a pipeline of the same stages.

        Raises:
            ValueError: It is not the state of a pipeline with this number of stages.
        """
        if state.get("format") != FORMAT or len(state["stages"]) != self._count:
            raise ValueError(f"not the state of a pipeline of {self._count} stages ({FORMAT!r})")
        if state["gradients"] != self._mode:
            named = [mode or "none" for mode in (state["gradients"], self._mode)]
            raise ValueError(
                f"the state is of gradients {named[0]}, this pipeline's are {named[1]} (none: it "
                "does not learn)"
            )
        self.wait()
        stages = list(map(revived_stage, state["stages"]))
        self._guarded(lambda: self._executor.load(stages))
        self._samples, self._steps = state["samples"], state["steps"]
        self._returned = state["returned"]
        self._asked = self._steps
        self._targets = deque((index, revived(message)) for index, message in state["targets"])
        self._forms = dict(state["forms"])
        self._answers.clear()
        for index, output, loss in state["answers"]:
            self._answers.append(Answer(message_of(index, output, "the answer"), loss))

    def report(self) -> list[dict[str, Any]]:
        """Return for each stage its steps, samples, updates, busy and CPU seconds, and events."""
        if self._closed:
            return self._reports
        reports: list[dict[str, Any]] = self._guarded(self._executor.reports)
        return reports

    def processes(self) -> list[int]:
        """Return the process ids of the stages that have a process of their own."""
        return self._executor.processes()

    def close(self) -> None:
        """End all threads or processes. Weights stay; nothing can be put in any more."""
        if self._closed:
            return
        try:
            self.wait()
            self._reports = self.report()
        except BaseException as error:
            self._fail(error)
            raise
        self._closed = True
        self._executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._fail(error)
        self.close()

    def _feed(self, message: Message | None) -> None:
        target = None
        if self._learning:
            if len(self._targets) >= self._count:
                _, target = self._targets.popleft()
        else:
            self._targets.clear()
        while self._steps - self._asked >= self._count + self._credits:
            self._take()
        self._guarded(partial(self._executor.feed, message, target))
        self._steps += 1

    def _pop(self) -> Answer:
        self._returned += 1
        return self._answers.popleft()

    def _take(self) -> None:
        reply = self._guarded(self._executor.reply)
        self._asked += 1
        self._answers.extend([reply] if reply else [])

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """Do what may show that a stage failed; then all others end before it is reported."""
        if self._closed:
            raise self._failure or ValueError("the pipeline is closed")
        try:
            return work()
        except (StageError, KeyboardInterrupt) as error:
            self._fail(error)  # interrupted between two stages, it cannot continue
            raise

    def _fail(self, error: BaseException) -> None:
        """End all stages at once, and remember why."""
        if not self._closed:
            self._closed = True
            self._failure = error if isinstance(error, StageError) else None
            self._executor.close(failed=True)

    def _set_mode(self, stage: int | None, training: bool) -> None:
        self.wait()
        for index in range(self._count) if stage is None else [stage]:
            self._guarded(partial(self._executor.train, index, training))

    def _checked(self, what: str, index: int, value: object) -> Message:
        message = message_of(index, value, f"{what} {index}")
        check_form(self._forms, what, message, f"{what} {index}")
        return cloned(message)  # the caller may write into its tensors again
