"""Training of a temporal network, on one process or on many that share every batch."""

import contextlib
import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float64
from actionspan.jobs.determinism import seed_torch
from actionspan.jobs.prefetch import prefetched
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.member import Replica
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.storage.model_files import write_model
from actionspan.storage.writing import digest, write_json
from actionspan.temporal import networks
from actionspan.temporal.augmentation import add_noise, change_speed
from actionspan.temporal.loss import BoundaryLoss
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.samples import Samples, batches, epoch_order, read_samples
from actionspan.temporal.settings import MODELS, ModelName, TemporalSettings
from actionspan.training.stopwatch import Stopwatch
from actionspan.training.trainer import Row, Trainer, begin, bits_of, join_ranks

_PARTS = ("loss", "start", "action", "end")  # of a `BoundaryLoss`, in the log
_KERNELS = 32  # oneDNN keeps a convolution for each length of input, of megabytes: usually 1024
_LOSSES = tuple(f"{subset}_{part}" for subset in ("training", "validation") for part in _PARTS)
LOG_COLUMNS = ("epoch", "learning_rate", *_LOSSES, "seconds")


def start(
    name: ModelName, channels: int, settings: TemporalSettings
) -> tuple[TemporalNetwork, torch.optim.Optimizer]:
    """Return a network, its weights drawn from the seed, and its optimiser."""
    seed_torch(settings.seed)
    model = networks.build_model(name, channels, settings)
    optimiser = torch.optim.Adam(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    return model, optimiser


def training_step(
    model: TemporalNetwork,
    replica: Replica,
    features: Tensor,
    labels: Tensor,
    rows: slice,
) -> BoundaryLoss | None:
    """Update the model by a batch, or by this rank's share of it where models are averaged.

    `features` (S, T, C) are `rows` of the batch, this rank's share; `labels` (B, T, 3), or with
    more columns, are of the full batch.

    Returns:
        This rank's part of the batch's loss before the update (where models are averaged, the loss
        of its share); None where its share is empty.
    """
    replica.optimiser.zero_grad()
    loss = None
    if len(features):
        batch = labels if replica.sums_gradients else None
        loss = model.loss(features, labels[rows], batch)
        loss.total.backward()  # type: ignore[no-untyped-call]
    replica.step()
    return loss


@dataclass(kw_only=True)
class TemporalTrainer(Trainer[TemporalNetwork]):
    """A temporal network in training; ranks share every batch."""

    samples: Samples
    settings: TemporalSettings

    def train_epoch(self, epoch: int) -> Row:
        """Go through the training videos once; return their mean losses."""
        model, replica, settings = self.model, self.replica, self.settings
        order = epoch_order(self.samples.training, settings.seed, epoch)
        sums = np.zeros(len(_PARTS))
        others = (replica.rank,) if replica.size > 1 else ()  # ranks drop different values
        data = batches(self.samples, order, settings.batch_size, replica.share)
        with contextlib.closing(prefetched(data)) as ready:
            timed = self.stopwatch.loop(ready, "data", "t1", replica)
            for step, (features, labels, rows) in enumerate(timed):
                seed_torch(settings.seed, epoch, step, *others)  # dropout
                first = step * settings.batch_size
                if settings.speed and model.cross_fitted:
                    features, labels = change_speed(features, labels, rows, settings, epoch, first)
                if settings.feature_noise:
                    features = add_noise(model, features, settings, epoch, first + rows.start)
                loss = training_step(model, replica, features, labels, rows)
                if loss is not None:
                    weight = len(labels) if replica.sums_gradients else len(features)
                    sums += weight * np.array([float(part.detach()) for part in loss])
        replica.synchronise()
        total = sum(replica.gather(sums, f"the losses of epoch {epoch}"))
        return _columns("training", total / len(order))

    @torch.no_grad()
    def validate(self) -> Row:
        """Return the mean losses of the validation videos; NaN where there is none.

        Ranks take complete batches in turn, and their losses are added in the order of the batches:
        the result is the same to the bit on any number of ranks.
        """
        videos, size, replica = self.samples.validation, self.settings.batch_size, self.replica
        if not len(videos):
            return _columns("validation", np.full(len(_PARTS), np.nan))
        self.model.eval()
        losses = {}
        for first in range(replica.rank * size, len(videos), replica.size * size):
            for features, labels, _ in batches(self.samples, videos[first : first + size], size):
                loss = self.model.loss(features, labels)
                losses[first] = len(features) * np.array([float(part) for part in loss])
        gathered = replica.gather(losses, "the validation losses")
        ordered = sorted((first, loss) for rank in gathered for first, loss in rank.items())
        return _columns("validation", sum(loss for _, loss in ordered) / len(videos))


def _columns(subset: str, losses: Float64) -> Row:
    return {f"{subset}_{part}": loss for part, loss in zip(_PARTS, losses.tolist(), strict=True)}


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
    started: float | None = None,
    continued: bool = True,
) -> None:
    """Train a network; rank 0 writes model.safetensors, log.tsv and timing.json into `out`.

    The bits of the model depend on the `threads` of each rank. `comm`, an mpi4py communicator, is
    not needed for exchange `none`. Seconds count from `started` (of `time.perf_counter`; None:
    now). If the training is `continued`, it begins at the checkpoint in the folder, if any.

    Raises:
        InputError: See `read_samples`; or the loss is not finite.
    """
    stopwatch = Stopwatch() if started is None else Stopwatch(started)
    parallel = parallel or ParallelSettings()
    kind = networks.network_class(name)

    def read() -> Samples:
        return read_samples(
            features_path,
            annotations_path,
            settings,
            columns=kind.columns,
            parts=settings.members if kind.cross_fitted else 0,
            causal=MODELS[name].features == "causal",
            check=comm is None or comm.Get_rank() == 0,
        )

    def build(samples: Samples) -> TemporalTrainer:
        model, optimiser = start(name, samples.features.shape[2], settings)
        replica = join_ranks(exchange, model, optimiser, parallel, comm)
        unchosen = settings.keep == "best" and not len(samples.validation)
        if unchosen and replica.rank == 0:
            line = "no validation video; the last epoch is kept"
            print(f"{features_path}: {line}", file=sys.stderr)
        bits = bits_of(exchange, parallel, replica.size)
        return TemporalTrainer(
            digest=digest(networks.FORMAT, name, settings, samples.fingerprint, threads, *bits),
            model=model,
            replica=replica,
            learning_rate=settings.learning_rate_in,
            kept="last" if unchosen else settings.keep,
            average_after=settings.epochs - settings.average_epochs,
            stopwatch=stopwatch,
            samples=samples,
            settings=settings,
        )

    # read at the first use; batches of a cross-fitted network differ in length, so it uses none of
    # them again, and those kept would lie between freed ones: memory would grow with each epoch
    kernels = 0 if kind.cross_fitted else _KERNELS
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(kernels))
    with begin(read, build, out, comm, parallel, threads, continued=continued) as trainer:
        # 1. train
        stopwatch.add("preparation", stopwatch.begun)
        epochs_here = trainer.fit(settings.epochs, f"training {name}")
        # 2. write the results
        samples, replica = trainer.samples, trainer.replica
        if replica.rank == 0:
            learned = trainer.weights(), trainer.digest, samples.parts
            content = networks.model_content(name, samples.features.shape[2], settings, *learned)
            write_model(out / "model.safetensors", content)
            trainer.log(out / "log.tsv", LOG_COLUMNS)
        timings = replica.gather(_rank_timing(replica, stopwatch), "the seconds of the run")
        if replica.rank == 0:
            # `epoch_seconds` are of all epochs. The other seconds are of these processes, which
            # after a kill ran the last `epochs_here` of them.
            described = {
                "model": name,
                "exchange": exchange,
                "ranks": replica.workers,
                "threads": threads,
                "samples": len(samples.training),
                "validation_samples": len(samples.validation),
                "epochs": settings.epochs,
                "epochs_here": epochs_here,
                "epoch_seconds": [row["seconds"] for row in trainer.rows],
            }
            write_json(out / "timing.json", described | whole_timing(timings))


def process_start() -> float:
    """Return when this process began, in `time.perf_counter`'s seconds.

    Only Linux reports it; elsewhere it is now, without the start of Python and its imports.
    """
    try:
        status = Path("/proc/self/stat").read_text()
        ticks = int(status.rpartition(")")[2].split()[19])  # since boot
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        age = 0.0
    return time.perf_counter() - age


def _rank_timing(replica: Replica, stopwatch: Stopwatch) -> dict[str, Any]:
    """Return a rank's host, and where its seconds went as paper 000 divides them (section III-E).

    `t1` is computing: forward, backward, update and validation. `t2` is waiting for other ranks:
    for their gradients, and between epochs. `t3` is the rest: the start of Python and of MPI,
    reading, checkpoints and writing the model. `communication` is all exchanges of gradients, which
    take more than t2 where they overlap with computing.
    """
    report = stopwatch.report()
    t1 = report.get("t1_seconds", 0.0) + report.get("validation_seconds", 0.0)
    t2 = replica.seconds["exchange"]
    return {
        "rank": replica.rank,
        "host": platform.node(),
        "role": "server" if replica.worker is None else "worker",
        "t1": t1,
        "t2": t2,
        "t3": report["seconds"] - t1 - t2,
        "communication": replica.seconds["communication"],
        "parts": report,
        **replica.report(),
    }


def whole_timing(timings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the timing of a run from its ranks' timings.

    Its t1, t2 and t3 are of a single rank, so that they add up to its seconds: of the worker
    that computed longest, since the others waited for it.
    """
    workers = [rank for rank in timings if rank["role"] == "worker"]
    slowest = max(workers, key=lambda rank: rank["t1"])
    parts = {f"{part}_seconds": slowest[part] for part in ("t1", "t2", "t3")}
    return {"seconds": slowest["parts"]["seconds"], **parts, "per_rank": timings}
