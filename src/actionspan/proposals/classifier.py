"""Train the classifier that labels proposals."""

import argparse
import math
import sys
from pathlib import Path

from actionspan.proposals.settings import ClassifierSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--out", type=Path, required=True, help="classifier.pt to write")
    parser.add_argument("--out-log", type=Path, help="table of the cross-validation to write")
    add_settings(parser, ClassifierSettings)


def run(arguments: argparse.Namespace) -> None:
    """Train on the instances of the training videos; without any, nothing will be labelled."""
    from actionspan.dataset.tables import iterate_annotations
    from actionspan.features.store import open_features
    from actionspan.files.storage import digest, write_tsv
    from actionspan.proposals.classifier_training import (
        LOG_COLUMNS,
        LabelledVideo,
        train_classifier,
    )
    from actionspan.proposals.segment_classifier import save_classifier

    settings = from_arguments(ClassifierSettings, arguments)
    features = open_features(arguments.features)
    videos = iterate_annotations(arguments.annotations)
    instances = {video.video_id: video.instances for video in videos if video.instances}
    annotated = [
        rows
        for rows in features.videos()
        if features.subset[rows.start] == "training" and features.video_id[rows.start] in instances
    ]
    total = sum(len(instances[features.video_id[rows.start]]) for rows in annotated)
    every = max(1, math.ceil(total / settings.most_instances))
    training = (
        LabelledVideo(
            sequence=features.sequence(rows),
            duration_seconds=float(features.duration_seconds[rows.start]),
            instances=instances[features.video_id[rows.start]],
        )
        for rows in annotated[::every]
    )
    classifier, log = train_classifier(training, features.array.shape[2], settings)
    if not classifier.labels:
        problem = "no training video has an instance; proposals get no labels"
        print(f"{arguments.annotations}: {problem}", file=sys.stderr)
    if arguments.out_log is not None:
        table = ([row[name] for name in LOG_COLUMNS] for row in log)
        write_tsv(arguments.out_log, LOG_COLUMNS, table)
    save_classifier(arguments.out, classifier, digest(settings))
