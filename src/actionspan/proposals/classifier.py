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
    parser.add_argument("--out", type=Path, required=True, help="classifier.safetensors to write")
    parser.add_argument("--out-log", type=Path, help="table of the cross-validation to write")
    add_settings(parser, ClassifierSettings)


def run(arguments: argparse.Namespace) -> None:
    """Train the classifier."""
    settings = from_arguments(ClassifierSettings, arguments)
    train_on_features(
        arguments.features, arguments.annotations, arguments.out, settings, arguments.out_log
    )


def train_on_features(
    features_path: Path,
    annotations: Path,
    out: Path,
    settings: ClassifierSettings,
    out_log: Path | None = None,
) -> None:
    """Train on the instances of the training videos; without any, nothing will be labelled.

    Raises:
        InputError: A file cannot be read.
    """
    from actionspan.annotations.tables import iterate_annotations
    from actionspan.features.store import open_features
    from actionspan.proposals import classifier_training
    from actionspan.proposals.segment_classifier import save_classifier
    from actionspan.storage.writing import digest, write_tsv

    features = open_features(features_path)
    videos = iterate_annotations(annotations)
    instances = {video.video_id: video.instances for video in videos if video.instances}
    annotated = [
        (rows, instances[features.video_id[rows.start]])
        for rows in features.videos()
        if features.subset[rows.start] == "training" and features.video_id[rows.start] in instances
    ]
    total = sum(len(own) for _, own in annotated)
    every = max(1, math.ceil(total / settings.most_instances))
    training = (
        classifier_training.LabelledVideo(
            sequence=features.sequence(rows),
            duration_seconds=float(features.duration_seconds[rows.start]),
            instances=own,
        )
        for rows, own in annotated[::every]
    )
    channels = features.array.shape[2]
    classifier, log = classifier_training.train_classifier(training, channels, settings)
    if not classifier.labels:
        problem = "no training video has an instance; proposals get no labels"
        print(f"{annotations}: {problem}", file=sys.stderr)
    if out_log is not None:
        columns = classifier_training.LOG_COLUMNS
        write_tsv(out_log, columns, ([row[name] for name in columns] for row in log))
    save_classifier(out, classifier, digest(settings))
