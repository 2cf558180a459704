"""Proposals to detections: each with the best classes that a classifier gives it."""

import argparse
from pathlib import Path

from actionspan.proposals.settings import DetectionSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="proposals.json")
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--classifier", type=Path, required=True, help="classifier.safetensors")
    parser.add_argument(
        "--out", type=Path, required=True, help="ActivityNet detection form to write"
    )
    add_settings(parser, DetectionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the detections of all videos."""
    from actionspan.proposals.segment_classifier import Labeller
    from actionspan.proposals.segments import detection_rows, iterate_proposals, write_proposals

    classes = from_arguments(DetectionSettings, arguments).classes
    labeller = Labeller(arguments.features, arguments.classifier)
    results = (
        (video, detection_rows(rows, labeller.labels, labeller.scores(video, rows), classes))
        for video, rows in iterate_proposals(arguments.proposals)
    )
    write_proposals(results, arguments.out)
