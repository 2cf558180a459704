"""Training of a two-stream classifier's streams by one learner or many (paper 003).

A checkpoint is written after every epoch; a run that was killed goes on after the last whole epoch
and ends with the same model to the bit. All that an epoch uses is in the checkpoint or follows from
(seed, epoch, step, learner), so that P learners in one process give the bits of P ranks.
"""

import contextlib
import copy
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.errors import InputError
from actionspan.files.storage import digest, write_json, write_tsv
from actionspan.files.torch_files import read_torch, write_torch
from actionspan.networks.architecture import architecture
from actionspan.networks.device import choose_device
from actionspan.networks.inputs import Inputs
from actionspan.networks.weights import describe
from actionspan.parallel.adaptive_batch import AdaptiveBatch
from actionspan.parallel.launch import root_first
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.parallel.watchdog import watched
from actionspan.recognition.batches import epoch_steps, training_batches
from actionspan.recognition.clip_store import ClipStore, Stream
from actionspan.recognition.evaluate import Evaluator, accuracy, autocast
from actionspan.recognition.learners import Team, make_team
from actionspan.recognition.network import (
    FORMAT,
    build_classifier,
    carry_over,
    classifier_content,
)
from actionspan.recognition.scores import training_words
from actionspan.recognition.settings import RecognitionSettings
from actionspan.running.determinism import deterministic, seed_torch
from actionspan.running.prefetch import prefetched
from actionspan.running.progress import progress

CHECKPOINT = ".checkpoint.pt"  # hidden, no output: Snakemake deletes the outputs of a failed job
PREPARATION = 10  # times stall_seconds: reading weights may take longer than an exchange
LOG_COLUMNS = (
    "epoch",
    "batch_size",
    "learning_rate",
    "samples",
    "training_loss",
    "validation_accuracy",
    "averages",
    "sent_bytes",
    "seconds",
    "waiting_seconds",
    "communication_seconds",
)


@dataclass
class Run:
    """Everything that changes while a classifier is trained."""

    team: Team
    batch: AdaptiveBatch
    epoch: int = 0
    best_accuracy: float = -1.0
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    rows: list[list[int | float]] = field(default_factory=list)
    traffic_before: tuple[int, int] = (0, 0)  # of processes that were killed

    def state(self, run_digest: str) -> dict[str, Any]:
        """Return the checkpoint; every rank calls it after `synchronise`."""
        return {
            "digest": run_digest,
            "model": self.team.models[0].state_dict(),
            "optimiser": self.team.optimisers[0].state_dict(),
            "own": self.team.replica.own_state(),
            "batch": self.batch.state(),
            "epoch": self.epoch,
            "best_accuracy": self.best_accuracy,
            "best_weights": self.best_weights,
            "rows": self.rows,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint; every rank has the same but for `own`, which is rank 0's."""
        for model, optimiser in zip(self.team.models, self.team.optimisers, strict=True):
            model.load_state_dict(state["model"])
            optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
        self.team.replica.restore_own(state["own"])
        self.batch.restore(state["batch"])
        self.epoch, self.best_accuracy = state["epoch"], state["best_accuracy"]
        self.best_weights, self.rows = state["best_weights"], state["rows"]
        last = dict(zip(LOG_COLUMNS, self.rows[-1], strict=True))
        self.traffic_before = int(last["averages"]), int(last["sent_bytes"])


@dataclass(frozen=True)
class Task:
    """What stays the same while a classifier is trained."""

    store: ClipStore
    stream: Stream
    settings: RecognitionSettings
    inputs: Inputs
    training: Any  # places of clips in the store
    validation: Any
    readers: int  # threads that decode; cores that the network computes on are not for them

    @property
    def labels(self) -> Any:
        """Return the class of each clip of the store."""
        return np.array([clip.label for clip in self.store.clips], np.int64)


def train_epoch(run: Run, task: Task) -> tuple[float, float]:
    """Go once through the training clips; return the mean loss and the seconds of waiting."""
    settings, team, epoch = task.settings, run.team, run.epoch + 1
    for optimiser in team.optimisers:
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate_in(epoch)
    for model in team.models:
        model.train()
    order = np.random.default_rng((settings.seed, epoch)).permutation(task.training)
    steps = epoch_steps(len(order), run.batch.size * team.replica.workers)
    data = training_batches(
        task.store, task.stream, order, steps, team.shares, settings, epoch, task.readers
    )
    losses, waited = 0.0, 0.0
    numbers = team.numbers()
    with contextlib.closing(prefetched(data)) as ready:
        for step in range(len(steps)):
            begun = time.perf_counter()
            count, parts = next(ready)
            waited += time.perf_counter() - begun
            for number, model, optimiser, (images, labels) in zip(
                numbers, team.models, team.optimisers, parts, strict=True
            ):
                optimiser.zero_grad()
                if number is None or not len(labels):
                    continue
                seed_torch(settings.seed, epoch, step, number)  # dropout
                with autocast(settings, task.inputs.device):
                    scores = model(task.inputs(images))
                targets = labels.to(task.inputs.device)
                loss = functional.cross_entropy(scores.float(), targets, reduction="sum")
                mean = loss / (count if team.replica.sums_gradients else len(labels))
                mean.backward()  # type: ignore[no-untyped-call]
                losses += float(loss.detach())
            team.replica.step()
    team.replica.synchronise()
    total = sum(team.replica.gather(losses, f"the losses of epoch {epoch}"))
    return total / len(order), waited


def run_epoch(run: Run, task: Task, evaluator: Evaluator) -> None:
    """Train for an epoch, validate, let the batch grow and keep the weights if they are best."""
    begun, replica, settings = time.perf_counter(), run.team.replica, task.settings
    size, before = run.batch.size, replica.seconds["exchange"]
    loss, waited = train_epoch(run, task)
    if not np.isfinite(loss):  # the same on all ranks
        raise InputError(
            f"the training loss is {loss} in epoch {run.epoch + 1}; "
            f"lower learning_rate, now {settings.learning_rate}"
        )
    exchanged = replica.seconds["exchange"] - before
    seconds = of_first_learner(run.team, (time.perf_counter() - begun, waited, exchanged))
    found = float("nan")
    with replica.first_buffers():
        if len(task.validation):
            probabilities = evaluator.probabilities(
                run.team.models[0], task.validation, settings.validation_samples
            )
            found = accuracy(probabilities, task.labels[task.validation])
            run.batch.update(found)
        best = settings.keep == "best" and len(task.validation) > 0
        if not best or found > run.best_accuracy:
            run.best_accuracy = found
            run.best_weights = copy.deepcopy(run.team.models[0].state_dict())
    run.epoch += 1
    run.rows.append(
        [
            run.epoch,
            size,
            settings.learning_rate_in(run.epoch),
            run.epoch * len(task.training),
            loss,
            found,
            *traffic(run),
            *seconds,
        ]
    )


def of_first_learner(team: Team, values: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values of the first learner's process: a server has none, and waits all the time.

    Every rank calls it.
    """
    learns = any(number is not None for number in team.numbers())
    every = team.replica.gather(values if learns else None, "the seconds of the learners")
    return next(one for one in every if one is not None)


def traffic(run: Run) -> tuple[int, int]:
    """Return how often models were averaged, and the bytes that all ranks have sent.

    Bytes are counted where our own code sends them: those of exchanges inside a library (mpi, gloo,
    periodic) are not known and count as 0.
    """
    report = run.team.replica.report()
    sent = run.team.replica.gather(int(report.get("sent_bytes", 0)), "the bytes that were sent")
    averages, before = run.traffic_before
    return averages + int(report.get("averages", 0)), before + sum(sent)


def resume(run: Run, checkpoint: Path, run_digest: str) -> dict[str, Any] | None:
    """Return the checkpoint to go on from, if there is one of the same settings and data."""
    if not checkpoint.exists():
        return None
    try:
        state = read_torch(checkpoint)
        if state["digest"] == run_digest:
            print(f"{checkpoint}: training goes on after epoch {state['epoch']}", file=sys.stderr)
            return dict(state)
    except (InputError, KeyError, TypeError):
        pass
    print(f"{checkpoint}: of other settings or data; training starts anew", file=sys.stderr)
    return None


def train(
    clips: Sequence[Path],
    stream: Stream,
    settings: RecognitionSettings,
    out: Path,
    *,
    weights: Path | None = None,
    rgb_model: Path | None = None,
    exchange: ExchangeName = "aavg",
    learners: int = 1,
    parallel: ParallelSettings | None = None,
    comm: Any = None,
    threads: int = 1,
    continued: bool = True,
) -> None:
    """Train a stream's classifier and write model.pt, log.tsv and scores.json into `out`.

    Args:
        clips: The clip stores.
        stream: `rgb` or `flow`.
        settings: How it is built and trained.
        out: The folder; rank 0 writes.
        weights: To start from; None: those that come with the network.
        rgb_model: model.pt of the RGB stream, from which flow starts where `transfer` is on.
        exchange: How learners are joined.
        learners: How many there are.
        parallel: Of the exchange; how often and what is averaged is in `settings`.
        comm: The ranks; None: all learners in this process (`aavg`), or one alone (`none`).
        threads: CPU threads of each process; the bits of the model depend on them.
        continued: Go on from a checkpoint in the folder, if there is one.

    Raises:
        InputError: A file is missing or no such file, there are fewer training clips than
            learners, or the loss is no longer a number.
    """
    parallel = parallel or ParallelSettings()
    rank = comm.Get_rank() if comm is not None else 0
    carried = rgb_model if stream == "flow" and settings.is_on("transfer") else None
    if stream == "flow" and settings.is_on("transfer") and carried is None:
        raise InputError("--rgb-model is missing: transfer needs model.pt of the RGB stream")

    def prepare() -> tuple[Task, nn.Module]:
        return read_task(clips, stream, settings, learners, weights, carried, threads, rank == 0)

    with deterministic(threads):
        with watched(comm, PREPARATION * parallel.stall_seconds) as waiting:
            if comm is not None:
                task, model = root_first(comm, prepare, waiting("the clips"))
            else:
                task, model = prepare()
            model = model.to(task.inputs.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
            with waiting("the first weights"):
                team = make_team(exchange, learners, model, settings, parallel, comm)
        growth = settings.batch_growth if settings.is_on("adaptive_batch") else 1.0
        batch = AdaptiveBatch(
            settings.batch_size, settings.batch_margin, growth, settings.batch_cap
        )
        run = Run(team, batch)
        start = digest(describe(settings.network, carried or weights))
        how = (exchange, learners, threads, parallel.wire, parallel.staleness)
        run_digest = digest(FORMAT, stream, settings, task.store.fingerprint, start, *how)
        state = resume(run, out / CHECKPOINT, run_digest) if rank == 0 and continued else None
        if comm is not None:
            state = comm.bcast(state, root=0)
        if state is not None:
            run.restore(state)
        evaluator = Evaluator(task.store, stream, settings, task.inputs, team.replica, task.readers)
        left = range(run.epoch, settings.epochs)
        shown = progress(left, f"training {stream}", len(left), unit="epoch") if not rank else left
        for _ in shown:
            run_epoch(run, task, evaluator)
            content = run.state(run_digest)  # every rank gives its own
            if rank == 0:
                write_torch(out / CHECKPOINT, content)
        trained = training_words(settings, learners, weights, task.store.data)
        finish(run, task, evaluator, out, run_digest, rank, trained)
        team.replica.close()
    if rank == 0:
        (out / CHECKPOINT).unlink(missing_ok=True)


def read_task(
    clips: Sequence[Path],
    stream: Stream,
    settings: RecognitionSettings,
    learners: int,
    weights: Path | None,
    carried: Path | None,
    threads: int,
    speaks: bool,
) -> tuple[Task, nn.Module]:
    """Open the clips and build the network to start from.

    Raises:
        InputError: See `train`.
    """
    store = ClipStore(clips)
    training, validation = store.rows("training"), store.rows("validation")
    names = ", ".join(map(str, clips))
    if len(training) < learners:
        raise InputError(
            f"{names}: {len(training)} training clips for {learners} learners; each needs one"
        )
    if len(store.classes) < 2:
        raise InputError(
            f"{names}: one class, {store.classes[0]!r}; a classifier needs two or more"
        )
    if speaks:
        seen = {store.clips[clip].label for clip in training.tolist()}
        for label, name in enumerate(store.classes):
            if label not in seen:
                print(f"{names}: no training clip of class {name!r}", file=sys.stderr)
        if not len(validation):
            print(f"{names}: no validation clip; the last epoch is kept", file=sys.stderr)
    channels = store.channels[stream]
    if carried is not None:
        model = carry_over(settings, channels, store.classes, carried)
    else:
        model = build_classifier(settings, channels, len(store.classes), weights)
    device = choose_device(settings.device)
    inputs = Inputs(architecture(settings.network), channels, device)
    readers = threads if device.type == "cuda" else 1
    return Task(store, stream, settings, inputs, training, validation, readers), model


def finish(
    run: Run, task: Task, evaluator: Evaluator, out: Path, run_digest: str, rank: int, trained: str
) -> None:
    """Score the validation clips with the model that is kept, and write the results."""
    model, settings, store = run.team.models[0], task.settings, task.store
    model.load_state_dict(run.best_weights)
    clips = task.validation
    probabilities = np.zeros((0, len(store.classes)))
    if len(clips):
        probabilities = evaluator.probabilities(model, clips, settings.final_samples)
    if rank:
        return
    labels = task.labels[clips]
    weights = {name: value.cpu() for name, value in run.best_weights.items()}
    channels = store.channels[task.stream]
    write_torch(
        out / "model.pt",
        classifier_content(settings, task.stream, channels, store.classes, weights, run_digest),
    )
    write_tsv(out / "log.tsv", LOG_COLUMNS, run.rows)
    found = accuracy(probabilities, labels)
    write_json(
        out / "scores.json",
        {
            "stream": task.stream,
            "trained": trained,
            "classes": store.classes,
            "samples": settings.final_samples,
            "accuracy": found if np.isfinite(found) else None,
            "clips": [store.clips[clip].clip_id for clip in clips],
            "labels": labels.tolist(),
            "probabilities": probabilities.tolist(),
        },
        indent=None,
    )
