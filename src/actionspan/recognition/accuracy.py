"""Accuracy of both streams and of their mean, by class."""

import argparse
from pathlib import Path

import numpy as np

from actionspan.errors import InputError
from actionspan.recognition.scores import accuracy, fused, read_classifier_scores
from actionspan.storage.text import markdown_table
from actionspan.storage.writing import write_text, write_tsv

_COLUMNS = ("class", "clips", "rgb", "flow", "two-stream")
_CAPTION = (
    "Accuracy on the validation clips in percent; two-stream: the mean of both streams' "
    "probabilities. The epoch of a network (recognition.training.keep) is chosen on the same clips."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    for stream in ("rgb", "flow"):
        parser.add_argument(f"--{stream}", type=Path, required=True, help=f"{stream}/scores.json")
    parser.add_argument("--out-tsv", type=Path, required=True, help="table to write")
    parser.add_argument(
        "--out-markdown", type=Path, required=True, help="the same table in Markdown"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the accuracies."""
    rows = _rows(arguments.rgb, arguments.flow)
    write_tsv(arguments.out_tsv, _COLUMNS, rows)
    lines = [_CAPTION, "", *markdown_table("lrrrr", _COLUMNS, rows)]
    write_text(arguments.out_markdown, "\n".join(lines) + "\n")


def _rows(rgb: Path, flow: Path) -> list[list[str]]:
    """Return a row for all classes, then one for each: validation clips, accuracies in percent.

    A class without validation clips has no accuracy.

    Raises:
        InputError: A file holds no scores, the two are of different clips, or have no clips.
    """
    first, second = (read_classifier_scores(path) for path in (rgb, flow))
    for key in ("classes", "clips", "labels"):
        if first[key] != second[key]:
            raise InputError(f"{flow}: {key} differ from {rgb}; train both on the same clips")
    if not first["clips"]:
        raise InputError(f"{rgb}: no validation clip; give clips for validation")
    streams = [first["probabilities"], second["probabilities"]]
    labels = np.array(first["labels"], np.int64)
    rows = []
    for number, name in enumerate(["all", *first["classes"]], start=-1):
        chosen = labels == number if number >= 0 else np.full(len(labels), True)
        shares = [accuracy(each[chosen], labels[chosen]) for each in (*streams, fused(streams))]
        cells = [f"{100 * share:.2f}" if chosen.any() else "" for share in shares]
        rows.append([name, str(int(chosen.sum())), *cells])
    return rows
