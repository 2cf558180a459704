"""The trainer of all stages: the loop over epochs, its checkpoint, its start on many ranks.

A run that was killed, at any moment, continues after the last complete epoch and ends with the same
model to the bit: all that an epoch uses is in the checkpoint or follows from (seed, epoch, step).
(With `ps_async` the order in which gradients arrive decides, and no two runs are the same.)
"""

import copy
import math
import os
import socket
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from torch import Tensor, nn
from torch.optim import Optimizer

from actionspan.errors import InputError
from actionspan.jobs.determinism import deterministic
from actionspan.jobs.progress import doing, progress
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.launch import root_first
from actionspan.parallel.member import Replica
from actionspan.parallel.replica import make_replica
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.parallel.watchdog import watched
from actionspan.storage.torch_files import SPOILT, read_torch, restoring, unsealed, write_sealed
from actionspan.storage.writing import write_tsv
from actionspan.training.settings import Keep
from actionspan.training.stopwatch import Stopwatch

CHECKPOINT = ".checkpoint.pt"  # hidden, no output: Snakemake deletes the outputs of a failed job
FORMAT = "training 3"

Row = dict[str, int | float]
"""An epoch in the log: plain numbers by column."""

_PREPARATION = 10  # times stall_seconds: reading may take longer than an exchange
Data = TypeVar("Data")
Model = TypeVar("Model", bound=nn.Module)
_Begun = TypeVar("_Begun", bound="Trainer[Any]")


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
    model: Model  # the first learner's; after every epoch all learners' models are alike
    replica: Replica  # the learners of this process, joined with other ranks' learners
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
        """Go once through the training data; return `training_loss` and more columns of the log."""

    @abstractmethod
    def validate(self) -> Row:
        """Return more columns of the log; all columns are alike on all ranks."""

    def score(self, row: Row) -> float:
        """Return the score of an epoch from its row; the best epoch has the highest."""
        return -row["validation_loss"]

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
            for model, optimiser in self.replica.learners:
                model.train()
                for group in optimiser.param_groups:
                    group["lr"] = rate * group.get("share", 1.0)
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
        doing("writing the results")
        return len(ahead)

    def state(self) -> dict[str, Any]:
        """Return the checkpoint, its tensors not copied; all ranks call it, rank 0 writes it."""
        return {
            "digest": f"{FORMAT} {self.digest}",
            "model": self.model.state_dict(),
            "optimiser": self.replica.optimiser.state_dict(),
            "own": self.replica.own_state(),
            "more": self.more.state() if self.more is not None else None,
            "epoch": self.epoch,
            "best_score": self.best_score,
            "kept_weights": self.kept_weights,
            "rows": self.rows,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint; every rank calls it with rank 0's."""
        for model, optimiser in self.replica.learners:
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
        """Go back to the checkpoint, if it is of the same settings and data; all ranks call it.

        Raises:
            InputError: It is damaged.
        """
        path, state = self.checkpoint, None
        # 1. rank 0 reads it
        if self.replica.rank == 0 and path is not None and path.exists():
            state = read_torch(path, SPOILT)
            if isinstance(state, dict) and state.get("digest") != f"{FORMAT} {self.digest}":
                what = "made with different settings or data; starting over"
                print(f"{path}: {what}", file=sys.stderr)
                state = None
            else:
                state = unsealed(path, state)
                with restoring(path):
                    print(f"{path}: resuming after epoch {state['epoch']}", file=sys.stderr)
        # 2. every rank goes back to it
        if comm is not None:
            state = comm.bcast(state, root=0)
        if path is not None and state is not None:
            with restoring(path):
                self.restore(state)

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


@contextmanager
def begin(
    read: Callable[[], Data],
    build: Callable[[Data], _Begun],
    folder: Path,
    comm: Communicator | None,
    parallel: ParallelSettings,
    threads: int,
    *,
    continued: bool = True,
) -> Iterator[_Begun]:
    """Yield the trainer that `build` makes of the data, with a checkpoint in the results' folder.

    Rank 0 reads first, so that a mistake is reported once, and all ranks begin alike, where they
    stopped if the training is `continued`. After the block, when all results are written, they part
    and the checkpoint is deleted.
    """
    with deterministic(threads):
        # 1. read the data, build the model, join the ranks, go back to the checkpoint
        doing("reading the data")
        with watched(comm, _PREPARATION * parallel.stall_seconds) as waiting:
            data = read() if comm is None else root_first(comm, read, waiting("the data"))
            with waiting("the first weights"):
                trainer = build(data)
                trainer.checkpoint = folder / CHECKPOINT
            with waiting("the state to start from"):
                if continued:
                    trainer.resume(comm)
        if comm is not None:
            _print_ranks(trainer.replica)
        # 2. train
        yield trainer
    # 3. part
    trainer.replica.close()
    if trainer.replica.rank == 0:
        (folder / CHECKPOINT).unlink(missing_ok=True)


def _print_ranks(replica: Replica) -> None:
    """Print which process is which rank: a launcher names a process that was killed by its PID."""
    part = "server" if replica.worker is None else "worker"
    name = f"{replica.rank} {part} (pid {os.getpid()} on {socket.gethostname()})"
    names = replica.gather(name, "the names of the ranks")
    if replica.rank == 0:
        print(f"ranks: {', '.join(names)}", file=sys.stderr, flush=True)


def join_ranks(
    exchange: ExchangeName,
    model: nn.Module,
    optimiser: Optimizer,
    parallel: ParallelSettings,
    comm: Communicator | None,
) -> Replica:
    """Return `parallel.make_replica` of these; a refusal is the user's mistake.

    Raises:
        InputError: The exchange does not fit the ranks.
    """
    try:
        return make_replica(exchange, model, optimiser, parallel, comm)
    except ValueError as error:
        raise InputError(str(error)) from None


def bits_of(exchange: ExchangeName, parallel: ParallelSettings, size: int) -> tuple[Any, ...]:
    """Return what decides the bits of a run's sums, for its digest."""
    if exchange == "none":
        return ()
    return exchange, size, replace(parallel, stall_seconds=1.0, overlap=False, cuda_aware=False)
