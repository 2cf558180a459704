"""Probabilities of start, action and end for every video of features.h5."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--model", type=Path, required=True, help="model.safetensors")
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--out", type=Path, required=True, help="probabilities.h5")


def run(arguments: argparse.Namespace) -> None:
    """Write the probabilities, one video at a time."""
    from actionspan.temporal.prediction import predict

    predict(arguments.model, arguments.features, arguments.out)
