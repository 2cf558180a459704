"""The start and the end of a training, on one process or on many ranks."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from torch import nn
from torch.optim import Optimizer

from actionspan.errors import InputError
from actionspan.jobs.determinism import deterministic
from actionspan.jobs.progress import doing
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.launch import root_first
from actionspan.parallel.member import Replica
from actionspan.parallel.replica import make_replica
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.parallel.watchdog import watched
from actionspan.training.trainer import Trainer

_PREPARATION = 10  # times stall_seconds: reading may take longer than an exchange
Data = TypeVar("Data")
Begun = TypeVar("Begun", bound=Trainer[Any])


@contextmanager
def begin(
    read: Callable[[], Data],
    build: Callable[[Data], Begun],
    comm: Communicator | None,
    parallel: ParallelSettings,
    threads: int,
    *,
    continued: bool = True,
) -> Iterator[Begun]:
    """Yield the trainer that `build` makes of the data, gone back to its checkpoint if `continued`.

    Rank 0 reads first, so that a mistake is reported once, and all ranks begin alike. After the
    block, when all results are written, they part and the checkpoint is deleted.
    """
    with deterministic(threads):
        # 1. read the data, build the model, join the ranks, go back to the checkpoint
        doing("reading the data")
        with watched(comm, _PREPARATION * parallel.stall_seconds) as waiting:
            data = read() if comm is None else root_first(comm, read, waiting("the data"))
            with waiting("the first weights"):
                trainer = build(data)
            with waiting("the state to start from"):
                if continued:
                    trainer.resume(comm)
        if comm is not None:
            _print_ranks(trainer.replica)
        # 2. train
        yield trainer
    # 3. part
    trainer.replica.close()
    if trainer.replica.rank == 0 and trainer.checkpoint is not None:
        trainer.checkpoint.unlink(missing_ok=True)


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
