"""Accuracy of both streams and of their mean, by class."""

import argparse
from pathlib import Path

from actionspan.files.storage import write_text, write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    for stream in ("rgb", "flow"):
        parser.add_argument(f"--{stream}", type=Path, required=True, help=f"{stream}/scores.json")
    parser.add_argument("--out-tsv", type=Path, required=True, help="table to write")
    parser.add_argument("--out-markdown", type=Path, required=True, help="the same to read")


def run(arguments: argparse.Namespace) -> None:
    """Write the accuracies."""
    from actionspan.recognition.two_stream import ACCURACY_COLUMNS, accuracy_markdown, accuracy_rows

    rows = accuracy_rows(arguments.rgb, arguments.flow)
    write_tsv(arguments.out_tsv, ACCURACY_COLUMNS, rows)
    write_text(arguments.out_markdown, accuracy_markdown(rows))
