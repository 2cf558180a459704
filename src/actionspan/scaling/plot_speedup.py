"""Draw the speed ratio of each exchange over ranks."""

import argparse
from pathlib import Path

from actionspan.scaling.table import read_times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--times", type=Path, required=True, help="times.tsv")
    parser.add_argument("--out", type=Path, required=True, help=".svg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Draw the figure."""
    from actionspan.scaling.speed_ratios import draw_speedup, speed_panels

    draw_speedup(arguments.out, speed_panels(arguments.times, read_times(arguments.times)))
