"""What a tuning leaves: encoders, the network trained with them, the log, scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from actionspan.features.settings import EncoderSettings
from actionspan.files.storage import create_h5, write_json
from actionspan.files.torch_files import write_torch
from actionspan.finetune.encoders import encoder_content
from actionspan.finetune.epochs import Tuned
from actionspan.finetune.objectives import Objective, OnlineObjective, ProposalObjective
from actionspan.finetune.precision import average_precision, mean_average_precision
from actionspan.finetune.preparation import Task
from actionspan.temporal.networks import model_content
from actionspan.training.fit import Run

LOG_COLUMNS = (
    "epoch",
    "learning_rate",
    "encoder_rate",
    "training_loss",
    "choosing_precision",
    "validation_precision",
    "kept_snippets",
    "saved_mb",
    "peak_mb",
    "reading_seconds",
    "learning_seconds",
    "seconds",
)
Scores = Mapping[str, tuple[Tensor, Tensor]]


def write_results(
    out: Path,
    model: Tuned,
    task: Task,
    encoders: EncoderSettings,
    run: Run,
    scores: Scores,
) -> None:
    """Write the files of a tuning into the folder `out`, on rank 0.

    `scores` are the scores (n, K) and labels of each validation video.
    """
    if run.replica.rank:
        return
    settings = task.settings
    weights = run.weights()
    prefix = "way.encoder."
    state = {key.removeprefix(prefix): v for key, v in weights.items() if key.startswith(prefix)}
    for stream in settings.streams:
        content = encoder_content(
            model.encoders, stream, encoders, state, settings.input_size, run.digest
        )
        write_torch(out / stream / "model.pt", content)
    write_torch(out / "temporal.pt", _network_content(model, task, run))
    run.log(out / "log.tsv", LOG_COLUMNS)
    _write_scores(out, model.objective, task, run, scores)


def _network_content(model: Tuned, task: Task, run: Run) -> dict[str, Any]:
    """Return what temporal.pt holds: the network above the encoders, and its projection."""
    arrays = {k: torch.from_numpy(np.array(a)) for k, a in model.transform.to_arrays().items()}
    objective = model.objective
    proposes = isinstance(objective, ProposalObjective)
    own = "objective.temporal." if proposes else "objective.head."
    inner = {k.removeprefix(own): v.cpu() for k, v in run.weights().items() if k.startswith(own)}
    if proposes:
        name, channels = task.settings.temporal, objective.projection.channels
        content = model_content(name, channels, task.temporal, inner, run.digest)
    else:
        content = {
            "format": "actionspan online 1",
            "head": task.head,
            "classes": task.videos.labels,
            "state_dict": inner,
            "digest": run.digest,
        }
    return {**content, "transform": arrays}


def _write_scores(out: Path, objective: Objective, task: Task, run: Run, scores: Scores) -> None:
    """Write what the network says of each validation video, and its average precision."""
    names = objective.classes if isinstance(objective, OnlineObjective) else ["actionness"]
    with create_h5(out / "scores.h5", run.digest) as file:
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
