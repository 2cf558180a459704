"""One file with all that `actionspan propose` needs."""

import argparse
from pathlib import Path

from actionspan.proposals.settings import CandidateSettings, RankingSettings, SuppressionSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--temporal", type=Path, required=True, help="the network's model.pt")
    parser.add_argument("--evaluator", type=Path, required=True, help="pem.pt")
    parser.add_argument("--classifier", type=Path, help="classifier.pt; without it, no labels")
    parser.add_argument("--out", type=Path, required=True, help="model.pt to write")
    for settings in (CandidateSettings, RankingSettings, SuppressionSettings):
        add_settings(parser, settings)


def run(arguments: argparse.Namespace) -> None:
    """Collect a trained model into one file."""
    from actionspan.proposals.model_bundle import write_bundle

    write_bundle(
        arguments.features,
        arguments.temporal,
        arguments.evaluator,
        arguments.out,
        classifier=arguments.classifier,
        candidates=from_arguments(CandidateSettings, arguments),
        ranking=from_arguments(RankingSettings, arguments),
        suppression=from_arguments(SuppressionSettings, arguments),
    )
