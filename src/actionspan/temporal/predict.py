"""Probabilities of start, action and end for every video of features.h5."""

import argparse
from pathlib import Path

from actionspan.settings import add_settings, from_arguments
from actionspan.temporal.settings import PredictionSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--model", type=Path, required=True, help="model.pt")
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--out", type=Path, required=True, help="probabilities.h5")
    add_settings(parser, PredictionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the probabilities, one video at a time."""
    from actionspan.temporal.prediction import predict

    settings = from_arguments(PredictionSettings, arguments)
    predict(arguments.model, arguments.features, arguments.out, settings)
