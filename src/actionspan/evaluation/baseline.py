"""Proposals by simpler means than training a network for them."""

import argparse
from collections import Counter
from pathlib import Path

from actionspan.dataset.tables import Annotation, read_annotations
from actionspan.errors import InputError
from actionspan.evaluation.baselines import (
    METHODS,
    NO_LENGTHS,
    BaselineSettings,
    Proposals,
    random_proposals,
    relative_lengths,
    sliding_windows,
)
from actionspan.evaluation.files import without_videos
from actionspan.evaluation.signals import actionness, frame_differences
from actionspan.proposals.grouping import group_proposals
from actionspan.proposals.settings import SuppressionSettings
from actionspan.proposals.writing import result_rows, write_proposals
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--method", required=True, choices=METHODS, help="which baseline")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    for name, values in (
        ("features", "frame differences (difference only)"),
        ("probabilities", "actionness (tag only)"),
    ):
        parser.add_argument(f"--{name}", type=Path, nargs="?", help=f"{name}.h5, for its {values}")
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--out-json", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--out-csv", type=Path, required=True, help="the same as a table")
    add_settings(parser, BaselineSettings)
    # difference and tag only; --proposals says how many are kept
    add_settings(parser, SuppressionSettings, without=["keep"])


def run(arguments: argparse.Namespace) -> None:
    """Write the proposals of one baseline for every video of a subset."""
    annotations = read_annotations(arguments.annotations)
    videos = [video for video in annotations if video.subset == arguments.subset]
    if not videos:
        held = without_videos(arguments.subset, Counter(video.subset for video in annotations))
        raise InputError(
            f"{arguments.annotations}: {held}; evaluation.subset (--subset) says which is scored"
        )
    results = (
        (video.video_id, result_rows(segments, scores))
        for video, (segments, scores) in zip(
            videos, _proposals(arguments, annotations, videos), strict=True
        )
    )
    write_proposals(results, arguments.out_json, arguments.out_csv)


def _proposals(
    arguments: argparse.Namespace, annotations: list[Annotation], videos: list[Annotation]
) -> list[Proposals]:
    """Return the proposals of each of `videos`."""
    settings = from_arguments(BaselineSettings, arguments)
    suppression = from_arguments(SuppressionSettings, arguments, keep=settings.proposals)
    if arguments.method == "random":
        return [random_proposals(item.video_id, item.duration_seconds, settings) for item in videos]
    if arguments.method == "sliding":
        is_prior = settings.window_prior == "training"
        lengths = relative_lengths(annotations) if is_prior else NO_LENGTHS
        return [sliding_windows(video.duration_seconds, lengths, settings) for video in videos]
    is_motion = arguments.method == "difference"
    name = "features" if is_motion else "probabilities"
    path = getattr(arguments, name)
    if path is None:
        raise InputError(f"--method {arguments.method} needs --{name} {name}.h5")
    signals = frame_differences(path, videos) if is_motion else actionness(path, videos)
    return [
        group_proposals(signal, video.duration_seconds, None, suppression, stretch=is_motion)
        for signal, video in zip(signals, videos, strict=True)
    ]
