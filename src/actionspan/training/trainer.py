"""The trainer of all stages: the loop over epochs, its checkpoint, where the seconds go.

A run that was killed, at any moment, continues after the last complete epoch and ends with the same
model to the bit: all that an epoch uses is in the checkpoint or follows from (seed, epoch, step).
(With `ps_async` the order in which gradients arrive decides, and no two runs are the same.)
"""

import copy
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from torch import Tensor, nn
from torch.optim import Optimizer

from actionspan.errors import InputError
from actionspan.jobs.progress import doing, progress
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.member import Replica
from actionspan.storage.torch_files import SPOILT, read_torch, restoring, unsealed, write_sealed
from actionspan.storage.writing import write_tsv
from actionspan.training.settings import Keep

CHECKPOINT = ".checkpoint.pt"  # hidden, no output: Snakemake deletes the outputs of a failed job
FORMAT = "training 3"

Row = dict[str, int | float]
"""An epoch in the log: plain numbers by column."""

Model = TypeVar("Model", bound=nn.Module)


@dataclass
class Stopwatch:
    """Seconds since `begun` (of `time.perf_counter`), and the parts of them `spent` on things."""

    begun: float = field(default_factory=time.perf_counter)
    spent: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, start: float, without: float = 0.0) -> None:
        """Add the time since `start`, less `without` seconds, to `name`."""
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start - without

    @contextmanager
    def part(self, name: str, replica: Replica) -> Iterator[None]:
        """Add the time of a block to `name`, without the replica's waiting for others in it."""
        start, waited = time.perf_counter(), replica.seconds["exchange"]
        yield
        self.add(name, start, without=replica.seconds["exchange"] - waited)

    def loop(self, items: Iterable[Any], coming: str, work: str, replica: Replica) -> Iterator[Any]:
        """Yield `items`; add the time they take to come to `coming`, the loop's body to `work`."""
        source = iter(items)
        while True:
            start = time.perf_counter()
            item = next(source, None)
            self.add(coming, start)
            if item is None:
                return
            with self.part(work, replica):
                yield item

    def report(self) -> dict[str, float]:
        """Return all seconds: `seconds` in total and `{name}_seconds` for each part."""
        total = time.perf_counter() - self.begun
        return {"seconds": total} | {f"{name}_seconds": part for name, part in self.spent.items()}


class _Stateful(Protocol):
    """Something else that changes from epoch to epoch, such as a batch size that grows."""

    def state(self) -> Any:
        """Return it as tensors and plain values."""

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""


@dataclass(kw_only=True)
class Trainer(ABC, Generic[Model]):
    """A model in training, from epoch to epoch.

    A stage's trainer adds its data, the epoch (`train_epoch`) and the validation (`validate`). A
    group of parameters with a `share` has that part of the learning rate.
    """

    digest: str  # of the settings and data; a checkpoint with a different digest is not used
    models: Sequence[Model]  # of this process's learners, alike after every epoch
    optimisers: Sequence[Optimizer]  # of each model's parameters
    replica: Replica  # joins them with other ranks' models
    learning_rate: Callable[[int], float]  # of an epoch; the first is 1
    kept: Keep  # which weights are kept
    average_after: int = 0  # for `average`: the mean is over the epochs after this one
    more: _Stateful | None = None  # what else changes
    checkpoint: Path | None = None  # rank 0 writes it after each epoch
    stopwatch: Stopwatch = field(default_factory=Stopwatch)  # takes `validation` and `checkpoint`
    epoch: int = 0  # how many epochs are complete
    best_score: float = math.nan  # of the best epoch, where that is kept
    # the best or the mean so far; empty where the last are kept, since the model has them
    kept_weights: dict[str, Tensor] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # the log

    rates: ClassVar[str] = "learning_rate"
    """The settings to lower where the loss is not finite."""

    @abstractmethod
    def train_epoch(self, epoch: int) -> Row:
        """Go once through the training data.

        Returns:
            Columns of the log, alike on all ranks; `training_loss` is one of them.
        """

    @abstractmethod
    def validate(self) -> Row:
        """Return the log's columns of the validation, alike on all ranks."""

    def score(self, row: Row) -> float:
        """Return the score of an epoch from its row; the best epoch has the highest."""
        return -row["validation_loss"]

    def report(self, row: Row) -> None:
        """Show a complete epoch; only rank 0 calls it."""

    @property
    def model(self) -> Model:
        """The first learner's model."""
        return self.models[0]

    def fit(self, epochs: int, title: str = "") -> int:
        """Train up to the last epoch; return how many were trained here.

        Rank 0 shows the progress, if it has a title.

        Raises:
            InputError: The loss is not finite, or the disk has no room for the checkpoint.
        """
        ahead = range(self.epoch + 1, epochs + 1)
        shown = title and self.replica.rank == 0
        for epoch in progress(ahead, title, len(ahead), unit="epoch") if shown else ahead:
            start = time.perf_counter()
            # 1. train
            doing(f"training, epoch {epoch}")
            rate = self.learning_rate(epoch)
            for optimiser in self.optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = rate * group.get("share", 1.0)
            for model in self.models:
                model.train()
            row = {"epoch": epoch, "learning_rate": rate, **self.train_epoch(epoch)}
            if not math.isfinite(row["training_loss"]):  # the same on all ranks
                raise InputError(
                    f"the training loss is {row['training_loss']} in epoch {epoch}; "
                    f"lower {self.rates}, now {self.learning_rate(1)}"
                )
            # 2. validate, and keep the weights if they are the best, or in the mean
            doing(f"validating, epoch {epoch}")
            with self.replica.first_buffers():
                with self.stopwatch.part("validation", self.replica):
                    row |= self.validate()
                self.keep(self.score(row))
            self.epoch = epoch
            self.rows.append({"seconds": time.perf_counter() - start, **row})
            # 3. write the checkpoint
            doing(f"writing the checkpoint of epoch {epoch}")
            with self.stopwatch.part("checkpoint", self.replica):
                state = self.state()  # all ranks give their own
                if self.replica.rank == 0 and self.checkpoint is not None:
                    write_sealed(self.checkpoint, state)
            if self.replica.rank == 0:
                self.report(self.rows[-1])
        doing("writing the results")
        return len(ahead)

    def state(self) -> dict[str, Any]:
        """Return the checkpoint, its tensors not copied; all ranks call it, rank 0 writes it."""
        return {
            "digest": f"{FORMAT} {self.digest}",
            "model": self.model.state_dict(),
            "optimiser": self.optimisers[0].state_dict(),
            "own": self.replica.own_state(),
            "more": self.more.state() if self.more is not None else None,
            "epoch": self.epoch,
            "best_score": self.best_score,
            "kept_weights": self.kept_weights,
            "rows": self.rows,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint; every rank calls it with rank 0's."""
        for model, optimiser in zip(self.models, self.optimisers, strict=True):
            model.load_state_dict(state["model"])
            # an optimiser takes over the very tensors, which learners may not share
            optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
        self.replica.restore_own(state["own"])
        if self.more is not None:
            self.more.restore(state["more"])
        self.epoch, self.rows = state["epoch"], state["rows"]
        self.best_score, now = state["best_score"], self.model.state_dict()
        # a checkpoint is read into host memory
        self.kept_weights = {
            name: kept.to(now[name].device) for name, kept in state["kept_weights"].items()
        }

    def resume(self, comm: Communicator | None = None) -> None:
        """Go back to the checkpoint, if it is of the same settings and data.

        Every rank calls it, and rank 0 reads.

        Raises:
            InputError: It is damaged.
        """
        if self.checkpoint is None:
            return
        state = self._saved_state(self.checkpoint) if self.replica.rank == 0 else None
        if comm is not None:
            state = comm.bcast(state, root=0)
        if state is not None:
            with restoring(self.checkpoint):
                self.restore(state)

    def _saved_state(self, checkpoint: Path) -> dict[str, Any] | None:
        """Return a checkpoint's state, or None where it is missing or of something else."""
        if not checkpoint.exists():
            return None
        state = read_torch(checkpoint, SPOILT)
        if isinstance(state, dict) and state.get("digest") != f"{FORMAT} {self.digest}":
            what = "made with different settings or data; starting over"
            print(f"{checkpoint}: {what}", file=sys.stderr)
            return None
        state = unsealed(checkpoint, state)
        with restoring(checkpoint):
            print(f"{checkpoint}: resuming after epoch {state['epoch']}", file=sys.stderr)
        return state

    def keep(self, score: float) -> None:
        """Take the weights of the epoch just trained into those that are kept.

        The best are copied if their score is the highest so far; NaN is below all others. The mean
        is over the weights after each epoch later than `average_after`, all with equal weight.
        The models of all ranks are alike after an epoch, so the ranks' means are too.
        """
        averaged = self.epoch + 1 - max(self.average_after, 0)  # epochs in the mean, with this one
        if self.kept == "last" or (self.kept == "average" and averaged < 1):
            return
        first = not self.kept_weights
        if self.kept == "best":
            if not first and (math.isnan(score) or score <= self.best_score):
                return
            self.best_score = score
        weights = self.model.state_dict()
        if first:
            self.kept_weights = copy.deepcopy(dict(weights))
            return
        for name, kept in self.kept_weights.items():  # into the same memory
            if self.kept == "average" and kept.is_floating_point():
                kept.lerp_(weights[name], 1 / averaged)
            else:
                kept.copy_(weights[name])

    def weights(self) -> dict[str, Tensor]:
        """Return the weights that are kept; the last epoch's are the model's own."""
        return self.kept_weights or self.model.state_dict()

    def log(self, path: Path, columns: Sequence[str]) -> None:
        """Write the log as a table, one row an epoch."""
        write_tsv(path, columns, [[row[name] for name in columns] for row in self.rows])
