"""Training of a two-stream classifier's streams by one learner or many (paper 003).

P learners in one process give the bits of P ranks.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from actionspan.errors import InputError
from actionspan.files.storage import digest, write_json
from actionspan.files.torch_files import write_torch
from actionspan.networks.weights import describe
from actionspan.parallel.adaptive_batch import AdaptiveBatch
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.recognition.batches import epoch_steps, training_batches
from actionspan.recognition.clip_store import Stream
from actionspan.recognition.evaluate import Evaluator, accuracy, autocast
from actionspan.recognition.learners import Team, make_team
from actionspan.recognition.network import (
    FORMAT,
    classifier_content,
)
from actionspan.recognition.scores import training_words
from actionspan.recognition.settings import RecognitionSettings
from actionspan.recognition.task import Task, read_task
from actionspan.running.determinism import deterministic, seed_torch
from actionspan.running.prefetch import prefetched
from actionspan.training.fit import begin, end, fit
from actionspan.training.run import CHECKPOINT, Row, Run
from actionspan.training.stopwatch import Stopwatch

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


def train_epoch(
    team: Team, task: Task, batch_size: int, epoch: int, before: tuple[int, int]
) -> Row:
    """Go once through the training clips; return columns of the log.

    Args:
        team: The learners.
        task: What they learn.
        batch_size: Of each learner.
        epoch: From 1.
        before: Averages and bytes of processes that were killed.
    """
    settings, replica, stopwatch = task.settings, team.replica, Stopwatch()
    before_epoch = replica.seconds["exchange"]
    order = np.random.default_rng((settings.seed, epoch)).permutation(task.training)
    steps = epoch_steps(len(order), batch_size * replica.workers)
    data = training_batches(
        task.store, task.stream, order, steps, team.shares, settings, epoch, task.readers
    )
    losses, numbers, device = 0.0, team.numbers(), task.inputs.device
    with contextlib.closing(prefetched(data)) as ready:
        timed = stopwatch.loop(ready, "waiting", "learning", replica)
        for step, (count, parts) in enumerate(timed):
            for number, model, optimiser, (images, labels) in zip(
                numbers, team.models, team.optimisers, parts, strict=True
            ):
                optimiser.zero_grad()
                if number is None or not len(labels):
                    continue
                seed_torch(settings.seed, epoch, step, number)  # dropout
                with autocast(settings, device):
                    scores = model(task.inputs(images))
                loss = functional.cross_entropy(scores.float(), labels.to(device), reduction="sum")
                mean = loss / (count if replica.sums_gradients else len(labels))
                mean.backward()  # type: ignore[no-untyped-call]
                losses += float(loss.detach())
            replica.step()
    replica.synchronise()
    total = sum(replica.gather(losses, f"the losses of epoch {epoch}"))
    exchanged = replica.seconds["exchange"] - before_epoch
    taken = stopwatch.report()["seconds"], stopwatch.spent["waiting"], exchanged
    seconds, waited, exchanged = of_first_learner(team, taken)
    averages, sent = traffic(team)
    return {
        "batch_size": batch_size,
        "samples": epoch * len(task.training),
        "training_loss": total / len(order),
        "averages": before[0] + averages,
        "sent_bytes": before[1] + sent,
        "seconds": seconds,
        "waiting_seconds": waited,
        "communication_seconds": exchanged,
    }


def validate(team: Team, task: Task, evaluator: Evaluator, batch: AdaptiveBatch) -> Row:
    """Return the accuracy on the validation clips, and let the batch grow where it fell."""
    if not len(task.validation):
        return {"validation_accuracy": float("nan")}
    samples = task.settings.validation_samples
    probabilities = evaluator.probabilities(team.models[0], task.validation, samples)
    found = accuracy(probabilities, task.labels[task.validation])
    batch.update(found)
    return {"validation_accuracy": found}


def of_first_learner(team: Team, values: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values of the first learner's process: a server has none, and waits all the time.

    Every rank calls it.
    """
    learns = any(number is not None for number in team.numbers())
    every = team.replica.gather(values if learns else None, "the seconds of the learners")
    return next(each for each in every if each is not None)


def traffic(team: Team) -> tuple[int, int]:
    """Return how often these processes averaged models, and the bytes that all have sent.

    Bytes are counted where our own code sends them: those of exchanges inside a library (mpi, gloo,
    periodic) are not seen and count as 0.
    """
    report = team.replica.report()
    sent = team.replica.gather(int(report.get("sent_bytes", 0)), "the bytes that were sent")
    return int(report.get("averages", 0)), sum(sent)


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
    comm: Communicator | None = None,
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
    checkpoint = out / CHECKPOINT
    carried = rgb_model if stream == "flow" and settings.is_on("transfer") else None
    if stream == "flow" and settings.is_on("transfer") and carried is None:
        raise InputError("--rgb-model is missing: transfer needs model.pt of the RGB stream")
    growth = settings.batch_growth if settings.is_on("adaptive_batch") else 1.0
    batch = AdaptiveBatch(settings.batch_size, settings.batch_margin, growth, settings.batch_cap)

    def read() -> tuple[Task, nn.Module]:
        first = comm is None or comm.Get_rank() == 0
        return read_task(clips, stream, settings, learners, weights, carried, threads, first)

    def build(prepared: tuple[Task, nn.Module]) -> Run:
        task, model = prepared
        model = model.to(task.inputs.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        team = make_team(exchange, learners, model, settings, parallel, comm)
        origin = digest(describe(settings.network, carried or weights))
        how = (exchange, learners, threads, parallel.wire, parallel.staleness)
        return Run(
            digest=digest(FORMAT, stream, settings, task.store.fingerprint, origin, *how),
            models=team.models,
            optimisers=team.optimisers,
            replica=team.replica,
            keep_best=settings.keep == "best" and len(task.validation) > 0,
            more=batch,
        )

    with deterministic(threads):
        # prepare: clips, network, learners, checkpoint
        resumed = checkpoint if continued else None
        (task, _), run = begin(comm, parallel.stall_seconds, read, build, resumed)
        team = Team(run.models, run.optimisers, run.replica)
        evaluator = Evaluator(task.store, stream, settings, task.inputs, team.replica, task.readers)
        last = run.rows[-1] if run.rows else {"averages": 0, "sent_bytes": 0}
        before = int(last["averages"]), int(last["sent_bytes"])
        # train
        fit(
            run,
            settings.epochs,
            lambda epoch: train_epoch(team, task, batch.size, epoch, before),
            lambda: validate(team, task, evaluator, batch),
            learning_rate=settings.learning_rate_in,
            score=lambda row: row["validation_accuracy"],
            checkpoint=checkpoint,
            title=f"training {stream}",
        )
        trained = training_words(settings, learners, weights, task.store.data)
        finish(run, task, evaluator, out, trained)
    end(run, checkpoint)


def finish(run: Run, task: Task, evaluator: Evaluator, out: Path, trained: str) -> None:
    """Score the validation clips with the model that is kept, and write the results."""
    model, settings, store = run.models[0], task.settings, task.store
    clips = task.validation
    probabilities = np.zeros((0, len(store.classes)))
    with run.replica.first_buffers():  # where the last epoch is kept, each rank has its own
        model.load_state_dict(run.weights())
        if len(clips):
            probabilities = evaluator.probabilities(model, clips, settings.final_samples)
    if run.replica.rank:
        return
    weights = {name: value.cpu() for name, value in run.weights().items()}
    labels, channels = task.labels[clips], store.channels[task.stream]
    content = classifier_content(
        settings, task.stream, channels, store.classes, weights, run.digest
    )
    write_torch(out / "model.pt", content)
    run.log(out / "log.tsv", LOG_COLUMNS)
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
