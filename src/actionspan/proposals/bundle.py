"""One file with all that `actionspan propose` needs."""

import argparse
import json
from pathlib import Path

from actionspan.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--temporal", type=Path, required=True, help="the network's model.pt")
    parser.add_argument("--evaluator", type=Path, required=True, help="pem.pt")
    parser.add_argument(
        "--settings", required=True, help="JSON object of the sections frames, flow, encoders, …"
    )
    parser.add_argument("--out", type=Path, required=True, help="model.pt to write")


def run(arguments: argparse.Namespace) -> None:
    """Collect a trained model into one file."""
    from actionspan.proposals.model_bundle import write_bundle

    try:
        settings = json.loads(arguments.settings)
    except json.JSONDecodeError as error:
        raise InputError(f"--settings: not JSON: {error.msg}") from None
    write_bundle(
        arguments.features, arguments.temporal, arguments.evaluator, settings, arguments.out
    )
