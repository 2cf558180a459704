"""Learn classes continually from streams of snippets in pipelines, as in figure 3 of paper 002."""

import argparse
from pathlib import Path

from actionspan.files.tables import add_outputs, write_figures, write_table
from actionspan.papers.partime.classification_report import draw, shown_rows, summary
from actionspan.papers.partime.runs import settings_of
from actionspan.papers.partime.settings import ClassificationSettings, PartimeSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="features/features.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument("--subset", default="validation", help="whose videos are scored")
    add_outputs(parser, figure=True)
    add_settings(parser, PartimeSettings)
    add_settings(parser, ClassificationSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a stream, window, way of learning, rate and seed, and the figure."""
    own, settings = settings_of(arguments), from_arguments(ClassificationSettings, arguments)
    from actionspan.papers.partime.classification_rows import classification_rows

    classes, rows = classification_rows(
        arguments.features, arguments.annotations, arguments.subset, own, settings
    )
    caption, titles, align = summary(own, settings, classes)
    write_table(arguments, rows, caption, align, titles, shown_rows(rows, own))
    write_figures(arguments, lambda figure: draw(figure, rows, own), (8.4, 3.8))
