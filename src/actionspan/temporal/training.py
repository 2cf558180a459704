"""Training of a temporal network, on one process or on many that share every batch.

A checkpoint is written after every epoch. A run that was killed, at whatever moment, goes on
after the last whole epoch and ends with the same model to the bit: all that an epoch uses is in
the checkpoint or follows from (seed, epoch, step). (With `ps_async` the order in which gradients
arrive decides, and no two runs are the same.)
"""

import contextlib
import copy
import os
import socket
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from actionspan.errors import InputError
from actionspan.files.storage import digest, write_json, write_tsv
from actionspan.files.torch_files import read_torch, write_torch
from actionspan.parallel.launch import root_first
from actionspan.parallel.replica import Replica, make_replica
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.parallel.watchdog import watched
from actionspan.running.determinism import deterministic, seed_torch
from actionspan.running.prefetch import prefetched
from actionspan.running.progress import progress
from actionspan.temporal.loss import BoundaryLoss, boundary_loss
from actionspan.temporal.model_file import FORMAT, model_content
from actionspan.temporal.mtn import TemporalNetwork, build_model
from actionspan.temporal.samples import Samples, batches, epoch_order, read_samples
from actionspan.temporal.settings import ModelName, TemporalSettings
from actionspan.temporal.timing import Stopwatch, rank_timing, whole_timing

CHECKPOINT = ".checkpoint.pt"  # hidden, no output: Snakemake deletes the outputs of a failed job
PREPARATION = 10  # times stall_seconds: reading all features may take longer than an exchange
PARTS = BoundaryLoss._fields
LOG_COLUMNS = (
    "epoch",
    "learning_rate",
    "training_loss",
    "training_start",
    "training_action",
    "training_end",
    "validation_loss",
    "validation_start",
    "validation_action",
    "validation_end",
    "seconds",
)


@dataclass
class Run:
    """Everything that changes while a network is trained."""

    model: TemporalNetwork
    optimiser: torch.optim.Optimizer
    epoch: int
    best_loss: float
    best_weights: dict[str, Tensor]
    rows: list[list[int | float]]
    own: Any = None
    """What `Replica.own_state` returned after the last epoch."""

    def state(self, run_digest: str) -> dict[str, Any]:
        """Return the checkpoint: all of the above."""
        return {
            "digest": run_digest,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "epoch": self.epoch,
            "best_loss": self.best_loss,
            "best_weights": self.best_weights,
            "rows": self.rows,
            "own": self.own,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.epoch, self.best_loss = state["epoch"], state["best_loss"]
        self.best_weights, self.rows = state["best_weights"], state["rows"]
        self.own = state.get("own")


def start_run(name: ModelName, channels: int, settings: TemporalSettings) -> Run:
    """Return a run before its first epoch, its weights drawn from the seed."""
    seed_torch(settings.seed)
    model = build_model(name, channels, settings)
    optimiser = torch.optim.Adam(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    return Run(model, optimiser, 0, float("inf"), {}, [])


def resume(run: Run, checkpoint: Path, run_digest: str) -> None:
    """Restore `run` from its checkpoint, if there is one made from the same settings and data."""
    if not checkpoint.exists():
        return
    try:
        state = read_torch(checkpoint)
        same = state["digest"] == run_digest
    except (InputError, KeyError, TypeError):
        same = False
    if not same:
        print(f"{checkpoint}: of other settings or data; training starts anew", file=sys.stderr)
        return
    run.restore(state)
    print(f"{checkpoint}: training goes on after epoch {run.epoch}", file=sys.stderr)


def training_step(
    model: TemporalNetwork,
    replica: Replica,
    features: Tensor,
    labels: Tensor,
    rows: slice,
    soft: bool = False,
) -> BoundaryLoss | None:
    """Update the model by one batch, or by this rank's share of it where models are averaged.

    Args:
        model: The network.
        replica: Its replica on this rank.
        features: (S, T, C) of this rank's share of the batch, perhaps of no video.
        labels: (B, T, 3) of the whole batch.
        rows: Which rows of the batch the share is.
        soft: Whether labels are soft.

    Returns:
        This rank's part of the batch's loss before the update (where models are averaged, the loss
        of its share); None where its share is empty.
    """
    replica.optimiser.zero_grad()
    loss = None
    if len(features):
        whole = labels if replica.sums_gradients else None
        loss = boundary_loss(model(features), labels[rows], whole, soft)
        loss.total.backward()  # type: ignore[no-untyped-call]
    replica.step()
    return loss


def add_noise(features: Tensor, settings: TemporalSettings, epoch: int, first: int) -> Tensor:
    """Return features with normal noise of deviation `feature_noise`.

    A video's noise follows from the seed, the epoch and the video's place in it, so that any
    number of ranks adds the same.

    Args:
        features: (S, T, C).
        settings: The deviation and the seed.
        epoch: From 1.
        first: Place of the first of these videos in the epoch.
    """
    noisy = features.clone()
    generator = torch.Generator()
    for place, video in enumerate(noisy, start=first):
        seed_torch(settings.seed, epoch, place, generator=generator)
        video += settings.feature_noise * torch.randn(video.shape, generator=generator)
    return noisy


def train_epoch(
    run: Run, replica: Replica, samples: Samples, settings: TemporalSettings, stopwatch: Stopwatch
) -> list[float]:
    """Go once through the training videos; return the mean total, start, action and end loss."""
    for group in run.optimiser.param_groups:
        group["lr"] = settings.learning_rate_in(run.epoch + 1)
    run.model.train()
    order = epoch_order(samples.training, settings.seed, run.epoch + 1)
    sums = np.zeros(len(PARTS))
    others = (replica.rank,) if replica.size > 1 else ()  # ranks drop different values
    soft = settings.smooth_labels > 0
    data = batches(samples, order, settings.batch_size, replica.share)
    with contextlib.closing(prefetched(data)) as ready:
        for step, (features, labels, rows) in enumerate(stopwatch.waiting(ready, "data")):
            begun, exchanged = time.perf_counter(), replica.seconds["exchange"]
            seed_torch(settings.seed, run.epoch + 1, step, *others)  # dropout
            if settings.feature_noise:
                first = step * settings.batch_size + rows.start
                features = add_noise(features, settings, run.epoch + 1, first)
            loss = training_step(run.model, replica, features, labels, rows, soft)
            if loss is not None:
                weight = len(labels) if replica.sums_gradients else len(features)
                sums += weight * np.array([float(part.detach()) for part in loss])
            stopwatch.add("t1", begun + replica.seconds["exchange"] - exchanged)
    replica.synchronise()
    of_all = replica.gather(sums, f"the losses of epoch {run.epoch + 1}")
    means: list[float] = (sum(of_all[1:], start=of_all[0]) / len(order)).tolist()
    return means


@torch.no_grad()
def validate(
    model: TemporalNetwork,
    samples: Samples,
    rows: np.ndarray[Any, Any],
    batch_size: int,
    replica: Replica | None = None,
    soft: bool = False,
) -> list[float]:
    """Return the mean total, start, action and end loss over `rows`; NaN where there is none.

    Ranks take whole batches in turn, and their losses are added in the order of the batches: the
    result is the same to the bit on any number of ranks.
    """
    if not len(rows):
        return [float("nan")] * len(PARTS)
    model.eval()
    rank, size = (replica.rank, replica.size) if replica is not None else (0, 1)
    chunks = [rows[begin : begin + batch_size] for begin in range(0, len(rows), batch_size)]
    losses = []
    for number in range(rank, len(chunks), size):
        for features, labels, _ in batches(samples, chunks[number], batch_size):
            loss = boundary_loss(model(features), labels, soft=soft)
            losses.append((number, len(features) * np.array([float(part) for part in loss])))
    if replica is not None:
        losses = sum(replica.gather(losses, "the validation losses"), start=[])
    losses.sort(key=lambda one: one[0])
    sums = np.zeros(len(PARTS))
    for _, summed in losses:
        sums += summed
    means: list[float] = (sums / len(rows)).tolist()
    return means


def run_epoch(
    run: Run, replica: Replica, samples: Samples, settings: TemporalSettings, stopwatch: Stopwatch
) -> None:
    """Train for an epoch, validate, and keep the weights if they are the ones to keep."""
    begun = time.perf_counter()
    training = train_epoch(run, replica, samples, settings, stopwatch)
    validating, waited = time.perf_counter(), replica.seconds["exchange"]
    size, soft = settings.batch_size, settings.smooth_labels > 0
    with replica.first_buffers():
        validation = validate(run.model, samples, samples.validation, size, replica, soft)
        stopwatch.add("validation", validating + replica.seconds["exchange"] - waited)
        if not np.isfinite(training[0]):  # the same on all ranks
            raise InputError(
                f"the training loss is {training[0]} in epoch {run.epoch + 1}; "
                f"lower learning_rate, now {settings.learning_rate}"
            )
        best = settings.keep == "best" and len(samples.validation) > 0
        if not best or not run.best_weights or validation[0] < run.best_loss:
            run.best_loss = validation[0]
            run.best_weights = copy.deepcopy(run.model.state_dict())
    run.epoch += 1
    run.own = replica.own_state()
    seconds = time.perf_counter() - begun
    rate = settings.learning_rate_in(run.epoch)
    run.rows.append([run.epoch, rate, *training, *validation, seconds])


def _replica(exchange: ExchangeName, run: Run, parallel: ParallelSettings, comm: Any) -> Replica:
    try:
        return make_replica(exchange, run.model, run.optimiser, parallel, comm)
    except ValueError as error:
        raise InputError(str(error)) from None


def bits_of(exchange: ExchangeName, parallel: ParallelSettings, size: int) -> tuple[Any, ...]:
    """Return what decides the bits of a run's sums, and so whether its checkpoint is another's."""
    if exchange == "none":
        return ()
    return exchange, size, replace(parallel, stall_seconds=1.0, overlap=False, cuda_aware=False)


def introduce(replica: Replica) -> None:
    """Print which process is which rank: a launcher names a process that was killed by its PID."""
    part = "server" if replica.worker is None else "worker"
    name = f"{replica.rank} {part} (pid {os.getpid()} on {socket.gethostname()})"
    names = replica.gather(name, "the names of the ranks")
    if replica.rank == 0:
        print(f"ranks: {', '.join(names)}", file=sys.stderr, flush=True)


def train(
    features_path: Path,
    annotations_path: Path,
    name: ModelName,
    settings: TemporalSettings,
    out: Path,
    threads: int = 1,
    *,
    exchange: ExchangeName = "none",
    parallel: ParallelSettings | None = None,
    comm: Any = None,
    begun: float | None = None,
    continued: bool = True,
) -> None:
    """Train a network and write model.pt, log.tsv and timing.json into the folder `out`.

    Args:
        features_path: features.h5.
        annotations_path: The canonical annotations.json.
        name: Which network.
        settings: How it is built and trained.
        out: The folder; rank 0 writes.
        threads: CPU threads of each rank; the bits of the model depend on them.
        exchange: How ranks exchange gradients.
        parallel: How they do it in detail.
        comm: The ranks, an mpi4py communicator; not needed for exchange `none`.
        begun: From when seconds count (of `time.perf_counter`); None: from now.
        continued: Go on from a checkpoint in the folder, if there is one.

    Raises:
        InputError: See `read_samples`; or the loss is no longer a number.
    """
    stopwatch = Stopwatch() if begun is None else Stopwatch(begun)
    parallel = parallel or ParallelSettings()
    checkpoint = out / CHECKPOINT
    rank = comm.Get_rank() if comm is not None else 0

    def read() -> Samples:
        return read_samples(features_path, annotations_path, settings, check=rank == 0)

    deadline = PREPARATION * parallel.stall_seconds
    with deterministic(threads):
        with watched(comm, deadline) as waiting:
            samples = root_first(comm, read, waiting("the data")) if comm is not None else read()
            how = bits_of(exchange, parallel, comm.Get_size() if comm is not None else 1)
            run_digest = digest(FORMAT, name, settings, samples.fingerprint, threads, *how)
            run = start_run(name, samples.features.shape[2], settings)
            if rank == 0:
                if settings.keep == "best" and not len(samples.validation):
                    line = "no validation video; the last epoch is kept"
                    print(f"{features_path}: {line}", file=sys.stderr)
                if continued:
                    resume(run, checkpoint, run_digest)
            if comm is not None:
                with waiting("the state to start from"):
                    run.restore(comm.bcast(run.state(run_digest) if rank == 0 else None, root=0))
            with waiting("the first weights"):
                replica = _replica(exchange, run, parallel, comm)
            replica.restore_own(run.own)
        if comm is not None:
            introduce(replica)
        stopwatch.add("preparation", stopwatch.begun)
        left = range(run.epoch, settings.epochs)
        shown = progress(left, f"training {name}", len(left), unit="epoch") if rank == 0 else left
        for _ in shown:
            run_epoch(run, replica, samples, settings, stopwatch)
            begun = time.perf_counter()
            if rank == 0:
                write_torch(checkpoint, run.state(run_digest))
            stopwatch.add("checkpoint", begun)
    if rank == 0:
        write_torch(
            out / "model.pt",
            model_content(name, run.model.channels, settings, run.best_weights, run_digest),
        )
        write_tsv(out / "log.tsv", LOG_COLUMNS, run.rows)
    timings = replica.gather(rank_timing(replica, stopwatch), "the seconds of the run")
    replica.close()
    if rank:
        return
    # `epoch_seconds` are of all epochs. The other seconds are of these processes, which after a
    # kill ran the last `epochs_here` of them.
    described = {
        "model": name,
        "exchange": exchange,
        "ranks": replica.workers,
        "threads": threads,
        "samples": len(samples.training),
        "validation_samples": len(samples.validation),
        "epochs": settings.epochs,
        "epochs_here": len(left),
        "epoch_seconds": [row[-1] for row in run.rows],
    }
    write_json(out / "timing.json", described | whole_timing(timings))
    checkpoint.unlink(missing_ok=True)
