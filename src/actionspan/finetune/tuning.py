"""Training of encoders together with the network above them, and its results.

It runs on one process or on many.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from actionspan.errors import InputError
from actionspan.features.encoders import device_of
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune import preparation
from actionspan.finetune.encoders import encoder_content, part_of, weights_facts, write_encoder
from actionspan.finetune.objectives import OnlineObjective, ProposalObjective
from actionspan.finetune.precision import average_precision, mean_average_precision
from actionspan.finetune.preparation import Task
from actionspan.finetune.settings import FinetuneSettings, HeadName
from actionspan.finetune.trainer import Tuned, TuningTrainer
from actionspan.jobs.memory import DeviceMemory
from actionspan.memory.ways import FeatureBank, make_way
from actionspan.networks.names import TUNED, is_hub
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.storage.model_files import write_model
from actionspan.storage.torch_files import read_torch, unsealed, write_sealed
from actionspan.storage.writing import create_h5, digest, write_json, write_text
from actionspan.temporal.networks import model_content
from actionspan.temporal.settings import TemporalSettings
from actionspan.training.trainer import begin, bits_of, join_ranks

PREPARED = ".prepared.pt"  # hidden, no output: kept until all results are written
LOG_COLUMNS = (
    *("epoch", "learning_rate", "encoder_rate", "training_loss"),
    *("choosing_precision", "validation_precision", "kept_snippets", "saved_mb", "peak_mb"),
    *("reading_seconds", "learning_seconds", "seconds"),
)


def tune(
    stores: Sequence[Path],
    annotations: Path,
    settings: FinetuneSettings,
    encoders: EncoderSettings,
    rescaling: RescaleSettings,
    temporal: TemporalSettings,
    out: Path,
    *,
    head: HeadName | None = None,
    exchange: ExchangeName = "none",
    parallel: ParallelSettings | None = None,
    comm: Communicator | None = None,
    threads: int = 1,
    continued: bool = True,
) -> None:
    """Tune encoders and write models, log.tsv and plan.json into `out`.

    Args:
        stores: Snippet stores of `finetune store`.
        annotations: The canonical annotations.json.
        settings: Of training and memory.
        encoders: Networks and weights to start from.
        rescaling: How features become the temporal network's steps.
        temporal: How that network is built.
        out: The folder; rank 0 writes.
        head: The causal head of online detection; None: a temporal network for proposals.
        exchange: How ranks exchange gradients or models.
        parallel: The details of the exchange.
        comm: The ranks; not needed for exchange `none`.
        threads: CPU threads of each rank; the bits of the models depend on them.
        continued: Resume from a checkpoint in the folder, if there is one.

    Raises:
        InputError: A file is missing or wrong, the budget is too small, or the loss is not
            finite.
    """
    parallel = parallel or ParallelSettings()
    if settings.way == "bank" and comm is not None and comm.Get_size() > 1:
        raise InputError(
            "finetune.way: bank: its features come from one process; give ranks 1 or another way"
        )
    prepared_path = out / PREPARED
    device = device_of(encoders)
    memory = DeviceMemory(device)

    def read() -> Task:
        return preparation.read_task(
            stores, annotations, settings, rescaling, temporal, head, threads
        )

    def build(task: Task) -> TuningTrainer:
        first = comm is None or comm.Get_rank() == 0
        torch.optim.Adam([torch.zeros(1)])  # imports libraries, which the budget does not count
        held_before = memory.held()
        built = preparation.untuned_encoders(task, encoders)
        before_planning = memory.held()
        chosen = preparation.plan_tuning(task, built)
        held_before += memory.held() - before_planning  # libraries again
        if first:
            print(preparation.plan_line(chosen), file=sys.stderr)
            write_text(out / "plan.json", chosen.to_json())
        asked = (settings, encoders, weights_facts(encoders, settings.streams), rescaling, temporal)
        videos = [[vars(video) | {"times": 0} for video in each] for each in task.videos.lists]
        source = digest("finetune 1", *asked, head, task.store.fingerprint, videos, threads)
        # the objective that an earlier start prepared from untuned encoders
        cached = _cached(prepared_path, source) if continued and first else None
        if comm is not None:
            cached = comm.bcast(cached, root=0)

        def keep(content: dict[str, Any]) -> None:
            write_sealed(prepared_path, {"digest": source, **content})

        objective = preparation.prepare(built, task, chosen.piece, comm, cached, keep)
        way = make_way(
            settings.way,
            built,
            chosen.keep_ratio,
            sampler=settings.sampler,
            gradient_weight=settings.gradient_weight,
            execution=chosen.execution,
            piece=chosen.piece,
        )
        model = Tuned(way, objective, chosen).to(device)
        optimiser = _optimiser(model, settings, temporal)
        replica = join_ranks(exchange, model, optimiser, parallel, comm)
        held_out = [objective.target(video).labels for video in task.videos.choosing]
        unchosen = settings.keep == "best" and not any(bool(each.any()) for each in held_out)
        if unchosen and first:
            line = "nothing happens in a training video that could be held out"
            print(f"{annotations}: {line}; the last epoch is kept", file=sys.stderr)
        return TuningTrainer(
            digest=digest(source, chosen.to_json(), *bits_of(exchange, parallel, replica.size)),
            model=model,
            replica=replica,
            learning_rate=lambda epoch: settings.temporal_rate,
            kept="last" if unchosen else settings.keep,
            average_after=settings.epochs - settings.average_epochs,
            more=way if isinstance(way, FeatureBank) else None,
            task=task,
            held_before=held_before,
        )

    with begin(read, build, out, comm, parallel, threads, continued=continued) as trainer:
        trainer.fit(settings.epochs, "tuning encoders")
        write_results(out, trainer, encoders)
    if trainer.replica.rank == 0:
        prepared_path.unlink(missing_ok=True)


def _cached(path: Path, source: str) -> dict[str, Any] | None:
    """Return the state that an earlier start prepared from the same source, or None."""
    try:
        content = unsealed(path, read_torch(path))
    except InputError:  # there is none, or it is damaged
        return None
    return content if content.get("digest") == source else None


def _optimiser(
    model: Tuned, settings: FinetuneSettings, temporal: TemporalSettings
) -> torch.optim.Optimizer:
    """Return Adam with a step size of its own for the encoders (paper 004, section 5.1.3)."""
    share = settings.encoder_rate / settings.temporal_rate
    groups: list[dict[str, Any]] = [
        {"params": [each for each in model.objective.parameters() if each.requires_grad]},
        {"params": [p for p in model.encoders.parameters() if p.requires_grad], "share": share},
    ]
    chosen = [group for group in groups if group["params"]]
    return torch.optim.Adam(chosen, lr=settings.temporal_rate, weight_decay=temporal.weight_decay)


def write_results(out: Path, trainer: TuningTrainer, encoders: EncoderSettings) -> None:
    """Score the validation videos on all ranks; write the files of a tuning on rank 0."""
    scores = trainer.validation_scores()
    if trainer.replica.rank:
        return
    model, settings = trainer.model, trainer.settings
    state = part_of(trainer.weights(), "way.encoder.")
    for stream in settings.streams:
        content = encoder_content(
            model.encoders, stream, encoders, state, settings.input_size, trainer.digest
        )
        if is_hub(content["network"]):
            write_encoder(model.encoders.of(stream), content, encoders, out / stream / TUNED)
        write_model(out / stream / "model.safetensors", content)
    write_model(out / "temporal.safetensors", _network_content(trainer))
    trainer.log(out / "log.tsv", LOG_COLUMNS)
    _write_scores(out, trainer, scores)


def _network_content(trainer: TuningTrainer) -> dict[str, Any]:
    """Return the content of temporal.safetensors: network above the encoders, and projection."""
    objective, task = trainer.model.objective, trainer.task
    proposes = isinstance(objective, ProposalObjective)
    own = "objective.temporal." if proposes else "objective.head."
    state = {name: value.cpu() for name, value in part_of(trainer.weights(), own).items()}
    if proposes:
        name, channels = task.settings.temporal, objective.transform.channels
        content = model_content(name, channels, task.temporal, state, trainer.digest)
    else:
        content = {
            "format": "actionspan online 1",
            "head": task.head,
            "classes": task.videos.labels,
            "state_dict": state,
            "digest": trainer.digest,
        }
    return {**content, "transform": preparation.tensors_of(objective.transform)}


def _write_scores(
    out: Path, trainer: TuningTrainer, scores: Mapping[str, tuple[Tensor, Tensor]]
) -> None:
    """Write the scores (n, K) and labels of each validation video, and their precision."""
    objective, task = trainer.model.objective, trainer.task
    names = objective.classes if isinstance(objective, OnlineObjective) else ["actionness"]
    with create_h5(out / "scores.h5", trainer.digest) as file:
        file.attrs["classes"] = names
        for name, (values, right) in scores.items():
            group: h5py.Group = file.create_group(name)
            group["scores"], group["labels"] = values.numpy(), right.numpy()
    every = list(scores.values()) or [(torch.zeros(0, len(names)),) * 2]
    found = np.concatenate([each.numpy() for each, _ in every])
    truth = np.concatenate([each.numpy() for _, each in every]) > 0
    precisions = [average_precision(*column) for column in zip(found.T, truth.T, strict=True)]
    result = {
        "way": task.settings.way,
        "head": task.head,
        "average_precision": dict(zip(names, map(_known, precisions), strict=True)),
        "mean_average_precision": _known(mean_average_precision(found, truth)),
        "rows": len(found),
        "videos": len(scores),
    }
    write_json(out / "scores.json", result)


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
