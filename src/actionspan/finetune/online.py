"""Tune encoders for online detection: each snippet scored from the past alone."""

import argparse

from actionspan.finetune.settings import HEADS, add_tuning_flags
from actionspan.finetune.train import run_tuning
from actionspan.training.settings import add_run_flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_tuning_flags(parser)
    parser.add_argument(
        "--head",
        choices=HEADS,
        default="recurrent",
        help="recurrent: GRU, as TRN; attention: over a window of the past, as LSTR (default: "
        "recurrent)",
    )
    add_run_flags(
        parser,
        "{stream}/model.safetensors, temporal.safetensors, log.tsv, scores.h5 and scores.json",
    )


def run(arguments: argparse.Namespace) -> None:
    """Tune, and score the validation videos snippet by snippet."""
    run_tuning(arguments, head=arguments.head)
