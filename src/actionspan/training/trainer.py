"""A training under way: its checkpoint, the loop over epochs, where the seconds go.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn
from torch.optim import Optimizer

from actionspan.errors import InputError
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

CHECKPOINT = ".checkpoint.pt"  # hidden, no output: Snakemake deletes the outputs of a failed job
FORMAT = "training 3"

Row = dict[str, int | float]
"""An epoch in the log: plain numbers by column."""

_PREPARATION = 10  # times stall_seconds: reading may take longer than an exchange
Data = TypeVar("Data")


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
class Run:
    """Everything that changes while a model is trained."""

    digest: str  # of the settings and data; a checkpoint with a different digest is not used
    models: Sequence[nn.Module]  # those that this process trains, alike after every epoch
    optimisers: Sequence[Optimizer]  # of each model's parameters
    replica: Replica  # joins them with other ranks' models
    kept: Keep  # which weights are kept
    average_after: int = 0  # for `average`: the mean is over the epochs after this one
    more: _Stateful | None = None  # what else changes
    epoch: int = 0  # how many epochs are complete
    best_score: float = math.nan  # of the best epoch, where that is kept
    # the best or the mean so far; empty where the last are kept, since the model has them
    kept_weights: dict[str, Tensor] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # the log

    def state(self) -> dict[str, Any]:
        """Return the checkpoint, its tensors not copied; all ranks call it, rank 0 writes it."""
        return {
            "digest": f"{FORMAT} {self.digest}",
            "model": self.models[0].state_dict(),
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
        self.best_score, now = state["best_score"], self.models[0].state_dict()
        # a checkpoint is read into host memory
        self.kept_weights = {
            name: kept.to(now[name].device) for name, kept in state["kept_weights"].items()
        }

    def resume(self, checkpoint: Path) -> dict[str, Any] | None:
        """Return the state to continue from, if there is one of the same settings and data.

        Raises:
            InputError: It is damaged.
        """
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
        weights = self.models[0].state_dict()
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
        return self.kept_weights or self.models[0].state_dict()

    def log(self, path: Path, columns: Sequence[str]) -> None:
        """Write the log as a table, one row an epoch."""
        write_tsv(path, columns, [[row[name] for name in columns] for row in self.rows])


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


def begin(
    comm: Communicator | None,
    stall_seconds: float,
    read: Callable[[], Data],
    build: Callable[[Data], Run],
    checkpoint: Path | None,
) -> tuple[Data, Run]:
    """Read the data, build the run before its first epoch, and go back to its checkpoint.

    All ranks begin alike. Rank 0 reads first, so that a mistake is reported once, and looks for the
    checkpoint if it has a path.
    """
    doing("reading the data")
    with watched(comm, _PREPARATION * stall_seconds) as waiting:
        data = read() if comm is None else root_first(comm, read, waiting("the data"))
        with waiting("the first weights"):
            run = build(data)
        with waiting("the state to start from"):
            rank = run.replica.rank
            state = run.resume(checkpoint) if rank == 0 and checkpoint is not None else None
            if comm is not None:
                state = comm.bcast(state, root=0)
            if state is not None and checkpoint is not None:
                with restoring(checkpoint):
                    run.restore(state)
    return data, run


def fit(
    run: Run,
    epochs: int,
    train_epoch: Callable[[int], Row],
    validate: Callable[[], Row],
    *,
    learning_rate: Callable[[int], float],
    score: Callable[[Row], float],
    checkpoint: Path | None,
    title: str = "",
    rates: str = "learning_rate",
    report: Callable[[Row], None] = lambda row: None,
    stopwatch: Stopwatch | None = None,
) -> int:
    """Train up to the last epoch, with a checkpoint after each; return how many were trained here.

    `train_epoch` takes the number of an epoch (from 1) and returns columns of the log, alike on all
    ranks, `training_loss` among them; `validate` returns more. A group of parameters with a `share`
    has that part of the learning rate. The best epoch is the one with the highest `score` in its
    row. Rank 0 writes the checkpoint, if it has a path, shows the progress, if that has a title,
    and calls `report` after each epoch. The stopwatch takes the seconds of `validation` and
    `checkpoint`.

    Raises:
        InputError: The loss is not finite, or the disk has no room for the checkpoint.
    """
    replica, stopwatch = run.replica, stopwatch or Stopwatch()
    ahead = range(run.epoch + 1, epochs + 1)
    shown = title and replica.rank == 0
    for epoch in progress(ahead, title, len(ahead), unit="epoch") if shown else ahead:
        start = time.perf_counter()
        doing(f"training, epoch {epoch}")
        # train
        for optimiser in run.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(epoch) * group.get("share", 1.0)
        for model in run.models:
            model.train()
        row = {"epoch": epoch, "learning_rate": learning_rate(epoch), **train_epoch(epoch)}
        if not math.isfinite(row["training_loss"]):  # the same on all ranks
            raise InputError(
                f"the training loss is {row['training_loss']} in epoch {epoch}; "
                f"lower {rates}, now {learning_rate(1)}"
            )
        doing(f"validating, epoch {epoch}")
        # validate, and keep the weights if they are the best, or in the mean
        with replica.first_buffers():
            with stopwatch.part("validation", replica):
                row |= validate()
            run.keep(score(row))
        run.epoch = epoch
        run.rows.append({"seconds": time.perf_counter() - start, **row})
        doing(f"writing the checkpoint of epoch {epoch}")
        # write the checkpoint
        with stopwatch.part("checkpoint", replica):
            state = run.state()  # all ranks give their own
            if replica.rank == 0 and checkpoint is not None:
                write_sealed(checkpoint, state)
        if replica.rank == 0:
            report(run.rows[-1])
    doing("writing the results")
    return len(ahead)


def end(run: Run, checkpoint: Path) -> None:
    """Leave the ranks and delete the checkpoint, when all results are written."""
    run.replica.close()
    if run.replica.rank == 0:
        checkpoint.unlink(missing_ok=True)


def introduce(replica: Replica) -> None:
    """Print which process is which rank: a launcher names a process that was killed by its PID."""
    part = "server" if replica.worker is None else "worker"
    name = f"{replica.rank} {part} (pid {os.getpid()} on {socket.gethostname()})"
    names = replica.gather(name, "the names of the ranks")
    if replica.rank == 0:
        print(f"ranks: {', '.join(names)}", file=sys.stderr, flush=True)
