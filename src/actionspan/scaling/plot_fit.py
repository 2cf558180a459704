"""Draw the run times of each exchange and the models fitted to them."""

import argparse
from pathlib import Path

from actionspan.scaling.times import read_times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--times", type=Path, required=True, help="times.tsv")
    parser.add_argument("--model", type=Path, required=True, help="timing_model.json")
    parser.add_argument("--out", type=Path, required=True, help=".svg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Draw the figure."""
    from actionspan.scaling.figures import draw_fit, read_model

    runs = read_times(arguments.times)
    draw_fit(arguments.out, runs, read_model(arguments.model, runs))
