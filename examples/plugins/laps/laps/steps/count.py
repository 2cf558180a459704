"""Count the events of a table of proposals."""

import argparse
from pathlib import Path

from actionspan.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="proposals.csv")


def run(arguments: argparse.Namespace) -> None:
    """Print the number of events."""
    try:
        lines = arguments.proposals.read_text().splitlines()
    except OSError as error:
        raise InputError(f"{arguments.proposals}: {error.strerror}") from None
    print(len(lines) - 1)
