"""Print the longest event of a table of proposals."""

import argparse
import csv
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="proposals.csv")


def run(arguments: argparse.Namespace) -> None:
    """Print the event with the longest duration."""
    with arguments.proposals.open() as file:
        rows = [(float(row["end"]) - float(row["start"]), row) for row in csv.DictReader(file)]
    print(max(rows, key=lambda row: row[0])[1])
