"""Boundary probabilities to candidates (PGM of BSN)."""

import argparse
from pathlib import Path

from actionspan.proposals.settings import CandidateSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--probabilities", type=Path, required=True, help="probabilities.h5")
    parser.add_argument("--out", type=Path, required=True, help="candidates.h5 to write")
    add_settings(parser, CandidateSettings)


def run(arguments: argparse.Namespace) -> None:
    """Make candidates.h5 from probabilities.h5."""
    from actionspan.proposals.store import write_candidates

    settings = from_arguments(CandidateSettings, arguments)
    write_candidates(arguments.probabilities, arguments.out, settings)
