"""Time models fitted to the run times: what `actionspan fit-timing` prints, as a file."""

import argparse
from pathlib import Path

from actionspan.scaling.fit_timing import fit_file
from actionspan.storage.writing import write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--times", type=Path, required=True, help="times.tsv")
    parser.add_argument("--out", type=Path, required=True, help="timing_model.json")


def run(arguments: argparse.Namespace) -> None:
    """Write the fitted time models."""
    write_json(arguments.out, fit_file(arguments.times))
