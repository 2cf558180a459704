"""Logs and scores of runs with numbers that a test chooses."""

import json
from pathlib import Path

from actionspan.recognition.training import LOG_COLUMNS
from actionspan.storage.writing import write_tsv


def write_log(folder: Path, run: str, stream: str, accuracies, **columns) -> Path:
    """Write the log of a run; other columns are given as one value an epoch."""
    path = folder / "runs" / run / stream / "log.tsv"
    values = {
        "epoch": [number + 1 for number in range(len(accuracies))],
        "validation_accuracy": accuracies,
        "samples": [12 * (number + 1) for number in range(len(accuracies))],
        "learning_rate": [0.0001] * len(accuracies),
        "averages": [number + 1 for number in range(len(accuracies))],
        "sent_bytes": [1_000_000 * (number + 1) for number in range(len(accuracies))],
        "seconds": [10.0] * len(accuracies),
        **columns,
    }
    rows = [
        [values.get(column, [0] * len(accuracies))[epoch] for column in LOG_COLUMNS]
        for epoch in range(len(accuracies))
    ]
    write_tsv(path, LOG_COLUMNS, rows)
    return path


def write_scores(folder: Path, run: str, stream: str, right, **changed) -> Path:
    """Write scores of clips of two classes, each classified right with the probability given."""
    path = folder / "runs" / run / stream / "scores.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = [number % 2 for number in range(len(right))]
    probabilities = [
        [p, 1 - p] if label == 0 else [1 - p, p] for p, label in zip(right, labels, strict=True)
    ]
    content = {
        "stream": stream,
        "trained": "a network, on some clips",
        "classes": ["calm", "fight"],
        "samples": 25,
        "accuracy": None,
        "clips": [f"clip{number}" for number in range(len(right))],
        "labels": labels,
        "probabilities": probabilities,
        **changed,
    }
    path.write_text(json.dumps(content))
    return path


def named(run: str, seeds: int) -> list[str]:
    """Return the names of so many seeds of a run."""
    return [run, *(f"{run}-seed{seed}" for seed in range(2, seeds + 1))]
