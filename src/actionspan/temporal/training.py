"""Training of a temporal network, on one process or on many that share every batch."""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.errors import InputError
from actionspan.files.storage import digest, write_json
from actionspan.files.torch_files import write_torch
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.member import Replica
from actionspan.parallel.replica import make_replica
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.running.determinism import deterministic, seed_torch
from actionspan.running.prefetch import prefetched
from actionspan.temporal.loss import BoundaryLoss, boundary_loss
from actionspan.temporal.model_file import FORMAT, model_content
from actionspan.temporal.mtn import build_model
from actionspan.temporal.networks import TemporalNetwork
from actionspan.temporal.samples import Samples, batches, epoch_order, read_samples
from actionspan.temporal.settings import ModelName, TemporalSettings
from actionspan.temporal.timing import rank_timing, whole_timing
from actionspan.training.fit import begin, end, fit, introduce
from actionspan.training.run import CHECKPOINT, Row, Run
from actionspan.training.stopwatch import Stopwatch

PARTS = ("loss", *BoundaryLoss._fields[1:])
LOG_COLUMNS = (
    "epoch",
    "learning_rate",
    *(f"training_{part}" for part in PARTS),
    *(f"validation_{part}" for part in PARTS),
    "seconds",
)


def start(
    name: ModelName, channels: int, settings: TemporalSettings
) -> tuple[TemporalNetwork, torch.optim.Optimizer]:
    """Return a network, its weights drawn from the seed, and its optimiser."""
    seed_torch(settings.seed)
    model = build_model(name, channels, settings)
    optimiser = torch.optim.Adam(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    return model, optimiser


def training_step(
    model: nn.Module,
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
    model: nn.Module,
    replica: Replica,
    samples: Samples,
    settings: TemporalSettings,
    epoch: int,
    stopwatch: Stopwatch,
) -> Row:
    """Go once through the training videos; return the mean total, start, action and end loss."""
    order = epoch_order(samples.training, settings.seed, epoch)
    sums = np.zeros(len(PARTS))
    others = (replica.rank,) if replica.size > 1 else ()  # ranks drop different values
    soft = settings.smooth_labels > 0
    data = batches(samples, order, settings.batch_size, replica.share)
    with contextlib.closing(prefetched(data)) as ready:
        timed = stopwatch.loop(ready, "data", "t1", replica)
        for step, (features, labels, rows) in enumerate(timed):
            seed_torch(settings.seed, epoch, step, *others)  # dropout
            if settings.feature_noise:
                first = step * settings.batch_size + rows.start
                features = add_noise(features, settings, epoch, first)
            loss = training_step(model, replica, features, labels, rows, soft)
            if loss is not None:
                weight = len(labels) if replica.sums_gradients else len(features)
                sums += weight * np.array([float(part.detach()) for part in loss])
    replica.synchronise()
    of_all = replica.gather(sums, f"the losses of epoch {epoch}")
    return columns("training", sum(of_all[1:], start=of_all[0]) / len(order))


def columns(subset: str, losses: np.ndarray[Any, Any]) -> Row:
    """Return losses as columns of the log."""
    return {f"{subset}_{part}": loss for part, loss in zip(PARTS, losses.tolist(), strict=True)}


@torch.no_grad()
def validate(
    model: nn.Module,
    samples: Samples,
    rows: np.ndarray[Any, Any],
    batch_size: int,
    replica: Replica | None = None,
    soft: bool = False,
) -> Row:
    """Return the mean total, start, action and end loss over `rows`; NaN where there is none.

    Ranks take whole batches in turn, and their losses are added in the order of the batches: the
    result is the same to the bit on any number of ranks.
    """
    if not len(rows):
        return columns("validation", np.full(len(PARTS), np.nan))
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
    losses.sort(key=lambda numbered: numbered[0])
    sums = np.zeros(len(PARTS))
    for _, summed in losses:
        sums += summed
    return columns("validation", sums / len(rows))


def bits_of(exchange: ExchangeName, parallel: ParallelSettings, size: int) -> tuple[Any, ...]:
    """Return what decides the bits of a run's sums, and so whether its checkpoint is another's."""
    if exchange == "none":
        return ()
    return exchange, size, replace(parallel, stall_seconds=1.0, overlap=False, cuda_aware=False)


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
    comm: Communicator | None = None,
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

    def read() -> Samples:
        first = comm is None or comm.Get_rank() == 0
        return read_samples(features_path, annotations_path, settings, check=first)

    def build(samples: Samples) -> Run:
        model, optimiser = start(name, samples.features.shape[2], settings)
        try:
            replica = make_replica(exchange, model, optimiser, parallel, comm)
        except ValueError as error:
            raise InputError(str(error)) from None
        if settings.keep == "best" and not len(samples.validation) and replica.rank == 0:
            line = "no validation video; the last epoch is kept"
            print(f"{features_path}: {line}", file=sys.stderr)
        how = bits_of(exchange, parallel, replica.size)
        return Run(
            digest=digest(FORMAT, name, settings, samples.fingerprint, threads, *how),
            models=[model],
            optimisers=[optimiser],
            replica=replica,
            keep_best=settings.keep == "best" and len(samples.validation) > 0,
        )

    with deterministic(threads):
        # prepare: data, network, ranks, checkpoint
        resumed = checkpoint if continued else None
        samples, run = begin(comm, parallel.stall_seconds, read, build, resumed)
        model, replica = run.models[0], run.replica
        if comm is not None:
            introduce(replica)
        stopwatch.add("preparation", stopwatch.begun)
        # train
        soft, size = settings.smooth_labels > 0, settings.batch_size
        epochs_here = fit(
            run,
            settings.epochs,
            lambda epoch: train_epoch(model, replica, samples, settings, epoch, stopwatch),
            lambda: validate(model, samples, samples.validation, size, replica, soft),
            learning_rate=settings.learning_rate_in,
            score=lambda row: -row["validation_loss"],
            checkpoint=checkpoint,
            title=f"training {name}",
            stopwatch=stopwatch,
        )
    # write the results
    if replica.rank == 0:
        channels = samples.features.shape[2]
        content = model_content(name, channels, settings, run.weights(), run.digest)
        write_torch(out / "model.pt", content)
        run.log(out / "log.tsv", LOG_COLUMNS)
    timings = replica.gather(rank_timing(replica, stopwatch), "the seconds of the run")
    if replica.rank == 0:
        # `epoch_seconds` are of all epochs. The other seconds are of these processes, which after
        # a kill ran the last `epochs_here` of them.
        described = {
            "model": name,
            "exchange": exchange,
            "ranks": replica.workers,
            "threads": threads,
            "samples": len(samples.training),
            "validation_samples": len(samples.validation),
            "epochs": settings.epochs,
            "epochs_here": epochs_here,
            "epoch_seconds": [row["seconds"] for row in run.rows],
        }
        write_json(out / "timing.json", described | whole_timing(timings))
    end(run, checkpoint)
