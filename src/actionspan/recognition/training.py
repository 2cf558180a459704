"""Training of a two-stream classifier's streams by one learner or many (paper 003).

P learners in one process give the bits of P ranks.
"""

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from actionspan import __version__
from actionspan.errors import InputError, counted
from actionspan.jobs.determinism import seed_torch
from actionspan.jobs.prefetch import prefetched
from actionspan.networks.weights import describe
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.model_averaging import AdaptiveBatch, InProcessAveraging
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.recognition.batches import epoch_steps, training_batches
from actionspan.recognition.scores import accuracy
from actionspan.recognition.settings import RecognitionSettings
from actionspan.recognition.task import FORMAT, Task, autocast, class_probabilities, read_task
from actionspan.storage.model_files import write_model
from actionspan.storage.writing import digest, write_json
from actionspan.training.stopwatch import Stopwatch
from actionspan.training.trainer import Row, Trainer, begin, join_ranks
from actionspan.video.jpegs import Stream

LOG_COLUMNS = (
    *("epoch", "batch_size", "learning_rate", "samples", "training_loss", "validation_accuracy"),
    *("averages", "sent_bytes", "seconds", "waiting_seconds", "communication_seconds"),
)


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
    """Train a stream's classifier and write model.safetensors, log.tsv and scores.json into `out`.

    Args:
        clips: The clip stores.
        stream: `rgb` or `flow`.
        settings: How it is built and trained.
        out: The folder; rank 0 writes.
        weights: To start from; None: those that come with the network.
        rgb_model: model.safetensors of the RGB stream, where flow starts if `transfer` is on.
        exchange: How learners are joined.
        learners: How many there are.
        parallel: Of the exchange.
        comm: The ranks; None: all learners in this process (`aavg`), or one alone (`none`).
        threads: CPU threads of each process; the bits of the model depend on them.
        continued: Resume from a checkpoint in the folder, if there is one.

    Raises:
        InputError: A file is missing or of the wrong kind, there are fewer training clips than
            learners, or the loss is not finite.
    """
    parallel = parallel or ParallelSettings()
    transfers = stream == "flow" and settings.is_on("transfer")
    carried = rgb_model if transfers else None
    if transfers and carried is None:
        raise InputError(
            "--rgb-model is missing: transfer needs model.safetensors of the RGB stream"
        )
    growth = settings.batch_growth if settings.is_on("adaptive_batch") else 1.0
    batch = AdaptiveBatch(settings.batch_size, settings.batch_margin, growth, settings.batch_cap)

    def read() -> tuple[Task, nn.Module]:
        first = comm is None or comm.Get_rank() == 0
        return read_task(clips, stream, settings, learners, weights, carried, threads, first)

    def build(prepared: tuple[Task, nn.Module]) -> RecognitionTrainer:
        task, model = prepared
        model = model.to(task.inputs.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        # the learners of this process: all of them, or one of many ranks'
        together = comm is None and exchange == "aavg"
        models = [model, *(copy.deepcopy(model) for _ in range(learners - 1) if together)]
        optimisers = [_optimiser(each, settings) for each in models]
        replica = (
            InProcessAveraging(models, optimisers, parallel)
            if together
            else join_ranks(exchange, model, optimisers[0], parallel, comm)
        )
        origin = digest(describe(settings.network, carried or weights))
        how = (exchange, learners, threads, parallel.wire, parallel.staleness)
        return RecognitionTrainer(
            digest=digest(FORMAT, stream, settings, task.store.fingerprint, origin, *how),
            model=model,
            replica=replica,
            learning_rate=settings.learning_rate_in,
            kept=settings.keep if len(task.validation) else "last",
            more=batch,
            task=task,
        )

    with begin(read, build, out, comm, parallel, threads, continued=continued) as trainer:
        trainer.fit(settings.epochs, f"training {stream}")
        _finish(trainer, out, caption(settings, learners, weights, trainer.task.store.data))


def _optimiser(model: nn.Module, settings: RecognitionSettings) -> torch.optim.Optimizer:
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimiser == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate, weight_decay=decay, momentum=0.9)
    return torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)


@dataclass(kw_only=True)
class RecognitionTrainer(Trainer[nn.Module]):
    """A stream's classifier in training, by the learners of this process or this rank's."""

    task: Task
    more: AdaptiveBatch
    before: tuple[int, int] = (0, 0)  # averages, and bytes sent, by processes that were killed

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint, and to its counts of averages and bytes."""
        super().restore(state)
        if self.rows:
            self.before = int(self.rows[-1]["averages"]), int(self.rows[-1]["sent_bytes"])

    def train_epoch(self, epoch: int) -> Row:
        """Go once through the training clips; each learner has its own clips a step."""
        task, replica, stopwatch = self.task, self.replica, Stopwatch()
        settings, size = task.settings, self.more.size
        waited = replica.seconds["exchange"]
        # 1. which of the learners are here: a server is None
        learners = replica.learners
        numbers = list(range(len(learners))) if len(learners) > 1 else [replica.worker]
        # 2. draw the batches
        order = np.random.default_rng((settings.seed, epoch)).permutation(task.training)
        steps = epoch_steps(len(order), size * replica.workers)
        asked = (order, steps, numbers, replica.workers, settings, epoch, task.readers)
        data = training_batches(task.store, task.stream, *asked)
        # 3. learn
        losses, device = 0.0, task.inputs.device
        with contextlib.closing(prefetched(data)) as ready:
            timed = stopwatch.loop(ready, "waiting", "learning", replica)
            for step, (count, parts) in enumerate(timed):
                for number, (model, optimiser), (images, labels) in zip(
                    numbers, learners, parts, strict=True
                ):
                    optimiser.zero_grad()
                    if number is None or not len(labels):
                        continue
                    seed_torch(settings.seed, epoch, step, number)  # dropout
                    with autocast(settings, device):
                        scores = model(task.inputs(images))
                    loss = functional.cross_entropy(
                        scores.float(), labels.to(device), reduction="sum"
                    )
                    mean = loss / (count if replica.sums_gradients else len(labels))
                    mean.backward()  # type: ignore[no-untyped-call]
                    losses += float(loss.detach())
                replica.step()
        replica.synchronise()
        # 4. collect the columns
        total = sum(replica.gather(losses, f"the losses of epoch {epoch}"))
        spent = stopwatch.report()
        own = spent["seconds"], spent["waiting_seconds"], replica.seconds["exchange"] - waited
        # the seconds are the first learner's: a server does nothing but wait
        learns = numbers != [None]
        every = replica.gather(own if learns else None, "the seconds of the learners")
        seconds, waiting, exchanged = next(each for each in every if each is not None)
        # exchanges inside a library (mpi, gloo, periodic) are not seen: their bytes count as 0
        report = replica.report()
        sent = replica.gather(int(report.get("sent_bytes", 0)), "the bytes that were sent")
        return {
            "batch_size": size,
            "samples": epoch * len(task.training),
            "training_loss": total / len(order),
            "averages": self.before[0] + int(report.get("averages", 0)),
            "sent_bytes": self.before[1] + sum(sent),
            "seconds": seconds,
            "waiting_seconds": waiting,
            "communication_seconds": exchanged,
        }

    def validate(self) -> Row:
        """Return the accuracy on the validation clips, and let the batch grow where it fell."""
        task, clips = self.task, self.task.validation
        samples = task.settings.validation_samples
        probabilities = class_probabilities(self.model, task, self.replica, clips, samples)
        correct = accuracy(probabilities, task.labels[clips])
        if len(clips):
            self.more.update(correct)
        return {"validation_accuracy": correct}

    def score(self, row: Row) -> float:
        """Return the accuracy."""
        return row["validation_accuracy"]


def _finish(trainer: RecognitionTrainer, out: Path, trained: str) -> None:
    """Score the validation clips with the model that is kept, and write the results."""
    model, replica, task = trainer.model, trainer.replica, trainer.task
    settings, store, clips = task.settings, task.store, task.validation
    # 1. score
    with replica.first_buffers():  # where the last epoch is kept, each rank has its own
        model.load_state_dict(trainer.weights())
        samples = settings.final_samples
        probabilities = class_probabilities(model, task, replica, clips, samples)
    if replica.rank:
        return
    # 2. write
    model_content = {
        "format": FORMAT,
        "actionspan_version": __version__,
        "network": settings.network,
        "stream": task.stream,
        "channels": store.channels[task.stream],
        "classes": store.classes,
        "input_size": settings.input_size,
        "state_dict": {name: value.cpu() for name, value in trainer.weights().items()},
        "digest": trainer.digest,
    }
    write_model(out / "model.safetensors", model_content)
    trainer.log(out / "log.tsv", LOG_COLUMNS)
    labels = task.labels[clips]
    correct = accuracy(probabilities, labels)
    scores = {
        "stream": task.stream,
        "trained": trained,
        "classes": store.classes,
        "samples": settings.final_samples,
        "accuracy": correct if np.isfinite(correct) else None,
        "clips": [store.clips[clip].clip_id for clip in clips],
        "labels": labels.tolist(),
        "probabilities": probabilities.tolist(),
    }
    write_json(out / "scores.json", scores, indent=None)


def caption(settings: RecognitionSettings, learners: int, weights: Path | None, data: str) -> str:
    """Return how a classifier is trained, and on what, for tables and figures."""
    start = "public weights" if settings.pretrained else "random weights"
    start = f"the weights {weights.name}" if weights else start
    return (
        f"{settings.network} from {start}, {settings.optimiser} at {settings.learning_rate:g}, "
        f"{counted(learners, 'learner')}, {settings.epochs} epochs, batches of "
        f"{settings.batch_size} a learner at the start, on {data}"
    )
