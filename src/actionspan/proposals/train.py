"""Train the evaluator of candidates (PEM of BSN)."""

import argparse
from pathlib import Path

from actionspan.proposals.settings import EvaluatorSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--candidates", type=Path, required=True, help="candidates.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--out", type=Path, required=True, help="pem.safetensors to write")
    parser.add_argument("--out-log", type=Path, help="table of losses to write, one row an epoch")
    add_settings(parser, EvaluatorSettings)


def run(arguments: argparse.Namespace) -> None:
    """Train the evaluator; a run that was killed continues when it is started again."""
    from actionspan.proposals.training import train_pem

    settings = from_arguments(EvaluatorSettings, arguments)
    train_pem(
        arguments.candidates, arguments.annotations, settings, arguments.out, arguments.out_log
    )
