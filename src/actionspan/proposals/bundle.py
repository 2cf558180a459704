"""One file with all that `actionspan propose` needs."""

import argparse
from pathlib import Path

from actionspan.proposals.bundle_files import SECTIONS
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--features", type=Path, required=True, help="the network's training features"
    )
    parser.add_argument(
        "--temporal", type=Path, required=True, help="the network's model.safetensors"
    )
    scorer = parser.add_mutually_exclusive_group(required=True)
    scorer.add_argument("--evaluator", type=Path, help="pem.safetensors")
    scorer.add_argument("--density", type=Path, help="density.safetensors (models span and stream)")
    parser.add_argument(
        "--classifier", type=Path, help="classifier.safetensors; without it, no labels"
    )
    parser.add_argument(
        "--classifier-features", type=Path, help="features.h5 (default: the network's)"
    )
    parser.add_argument("--out", type=Path, required=True, help="model.safetensors to write")
    card = "a model card to write, such as README.md, of facts that the file has"
    parser.add_argument("--card", dest="out_card", type=Path, metavar="FILE", help=card)
    named = "title of the card (default: the name of its folder)"
    parser.add_argument("--card-title", metavar="TEXT", help=named)
    licence = "licence of the model in the card (default: other)"
    parser.add_argument("--card-license", default="other", metavar="NAME", help=licence)
    data = "a sentence in the card about the videos that it learned from"
    parser.add_argument("--card-data", default="", metavar="TEXT", help=data)
    ranks = "give events ranks and no chance: for other footage than it learned from"
    parser.add_argument("--ranks", action="store_true", help=ranks)
    for settings in SECTIONS.values():
        add_settings(parser, settings)


def run(arguments: argparse.Namespace) -> None:
    """Collect a trained model into one file."""
    from actionspan.proposals.bundle_writing import write_bundle

    write_bundle(
        arguments.features,
        arguments.temporal,
        arguments.evaluator or arguments.density,
        arguments.out,
        classifier=arguments.classifier,
        classified=arguments.classifier_features,
        ranks=arguments.ranks,
        **{name: from_arguments(kind, arguments) for name, kind in SECTIONS.items()},
    )
    if arguments.out_card is not None:
        from actionspan.proposals.model_card import card_of
        from actionspan.storage.writing import write_text

        title = arguments.card_title or arguments.out_card.resolve().parent.name
        words = title, arguments.card_license, arguments.card_data
        write_text(arguments.out_card, card_of(arguments.out, *words))
