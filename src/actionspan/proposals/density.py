"""Train the density of instances over all segments (models span and stream)."""

import argparse
from pathlib import Path

from actionspan.proposals.settings import DensitySettings, EventSettings, LatticeSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--probabilities", type=Path, required=True, help="probabilities.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--out", type=Path, required=True, help="density.safetensors to write")
    parser.add_argument(
        "--ahead",
        type=float,
        help="steps behind a segment's end that are seen, for a stream (default: all)",
    )
    add_settings(parser, LatticeSettings)
    add_settings(parser, DensitySettings)
    add_settings(parser, EventSettings, without=["bar"])  # the list with calibrated chances


def run(arguments: argparse.Namespace) -> None:
    """Train the density."""
    from actionspan.proposals.density_training import train_density

    train_density(
        arguments.probabilities,
        arguments.annotations,
        arguments.out,
        from_arguments(DensitySettings, arguments),
        from_arguments(LatticeSettings, arguments),
        arguments.ahead,
        from_arguments(EventSettings, arguments, bar=None),
    )
