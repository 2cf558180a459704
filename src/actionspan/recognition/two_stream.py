"""Accuracy of a run's two classifiers, and of both together, by class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actionspan.errors import InputError
from actionspan.files.markdown import markdown_table
from actionspan.recognition.evaluate import accuracy, fused
from actionspan.recognition.scores import read_classifier_scores

ACCURACY_COLUMNS = ("class", "clips", "rgb", "flow", "two-stream")
ALL_CLASSES = "all"


def accuracy_rows(rgb: Path, flow: Path) -> list[list[str]]:
    """Return a row for all classes, then one for each: validation clips, accuracies in percent.

    Two-stream is the mean of both streams' probabilities (paper 003, section II). A class without
    validation clips has no accuracy.

    Args:
        rgb: scores.json of the RGB stream.
        flow: That of the flow stream, of the same clips.

    Raises:
        InputError: A file is no such scores, they are of different clips, or there is no clip.
    """
    first, second = (read_classifier_scores(path) for path in (rgb, flow))
    for key in ("classes", "clips", "labels"):
        if first[key] != second[key]:
            raise InputError(f"{flow}: {key} are not those of {rgb}; train both on the same clips")
    if not first["clips"]:
        raise InputError(f"{rgb}: no validation clip; give clips for validation")
    streams = [first["probabilities"], second["probabilities"]]
    labels = np.array(first["labels"], np.int64)
    rows = []
    for number, name in enumerate([ALL_CLASSES, *first["classes"]], start=-1):
        of = labels == number if number >= 0 else np.full(len(labels), True)
        found = [accuracy(each[of], labels[of]) for each in (*streams, fused(streams))]
        cells = [f"{100 * one:.2f}" if of.any() else "" for one in found]
        rows.append([name, str(int(of.sum())), *cells])
    return rows


def accuracy_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return such rows as Markdown."""
    lines = [
        "Accuracy on the validation clips in percent; two-stream: the mean of both streams' "
        "probabilities. The epoch of a network (recognition.training.keep) is chosen on the same "
        "clips.",
        "",
        *markdown_table("lrrrr", ACCURACY_COLUMNS, rows),
    ]
    return "\n".join(lines) + "\n"
