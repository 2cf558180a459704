"""The training loop, and what comes before and after it on one rank or many."""

import math
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from actionspan.errors import InputError
from actionspan.files.torch_files import write_torch
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.launch import root_first
from actionspan.parallel.member import Replica
from actionspan.parallel.watchdog import watched
from actionspan.running.progress import doing, progress
from actionspan.training.run import Row, Run
from actionspan.training.stopwatch import Stopwatch

PREPARATION = 10  # times stall_seconds: reading may take longer than an exchange
Data = TypeVar("Data")


def begin(
    comm: Communicator | None,
    stall_seconds: float,
    read: Callable[[], Data],
    build: Callable[[Data], Run],
    checkpoint: Path | None,
) -> tuple[Data, Run]:
    """Read the data, build the run and go back to its checkpoint; all ranks begin alike.

    Rank 0 reads first, so that a mistake is reported once, and looks for the checkpoint, if it has
    a path. `build` makes the run before its first epoch, its replica included.
    """
    doing("reading the data")
    with watched(comm, PREPARATION * stall_seconds) as waiting:
        data = read() if comm is None else root_first(comm, read, waiting("the data"))
        with waiting("the first weights"):
            run = build(data)
        with waiting("the state to start from"):
            rank = run.replica.rank
            state = run.resume(checkpoint) if rank == 0 and checkpoint is not None else None
            if comm is not None:
                state = comm.bcast(state, root=0)
            if state is not None:
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
    has that part of the learning rate. The best epoch is the one whose row has the highest `score`.
    Rank 0 writes the checkpoint, if it has a path, shows the progress, if that has a title, and
    calls `report` after each epoch. The stopwatch takes the seconds of `validation` and
    `checkpoint`.

    Raises:
        InputError: The loss is no longer a number, or there is no room for the checkpoint.
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
                write_torch(checkpoint, state)
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
