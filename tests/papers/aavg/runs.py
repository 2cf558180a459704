"""Logs and scores of runs with numbers that a test chooses."""

import json
from pathlib import Path

from actionspan.recognition.training import LOG_COLUMNS
from actionspan.storage.writing import write_tsv

WORDS = "a network, on some clips"
T95 = 12.706204736  # of one degree of freedom


def write_log(folder: Path, run: str, stream: str, accuracies, **columns) -> Path:
    """Write the log of a run; other columns are given as one value an epoch."""
    path, epochs = folder / "runs" / run / stream / "log.tsv", range(1, len(accuracies) + 1)
    values = {
        **{"epoch": epochs, "averages": epochs, "validation_accuracy": accuracies},
        "samples": [12 * number for number in epochs],
        "learning_rate": [0.0001] * len(epochs),
        "sent_bytes": [1_000_000 * number for number in epochs],
        "seconds": [10.0] * len(epochs),
        **columns,
    }
    given = [values.get(column, [0] * len(epochs)) for column in LOG_COLUMNS]
    write_tsv(path, LOG_COLUMNS, zip(*given, strict=True))
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
        **{"stream": stream, "trained": WORDS, "classes": ["calm", "fight"], "samples": 25},
        **{"accuracy": None, "clips": [f"clip{number}" for number in range(len(right))]},
        **{"labels": labels, "probabilities": probabilities},
        **changed,
    }
    path.write_text(json.dumps(content))
    return path


def named(run: str, seeds: int) -> list[str]:
    """Return the names of so many seeds of a run."""
    return [run, *(f"{run}-seed{seed}" for seed in range(2, seeds + 1))][:seeds]
