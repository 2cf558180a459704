"""Proposals by simpler means than a trained network's."""

import argparse
from pathlib import Path

from actionspan.dataset.tables import read_annotations
from actionspan.errors import InputError
from actionspan.evaluation.baselines import (
    METHODS,
    NO_LENGTHS,
    BaselineSettings,
    actionness_proposals,
    motion_proposals,
    random_proposals,
    relative_lengths,
    sliding_windows,
)
from actionspan.evaluation.signals import actionness, frame_differences
from actionspan.proposals.settings import SuppressionSettings
from actionspan.proposals.writing import result_rows, write_proposals
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--method", required=True, choices=METHODS, help="which baseline")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument(
        "--features",
        type=Path,
        nargs="?",
        help="features.h5, for its frame differences (difference only)",
    )
    parser.add_argument(
        "--probabilities",
        type=Path,
        nargs="?",
        help="probabilities.h5, for its actionness (tag only)",
    )
    parser.add_argument("--subset", default="validation", help="whose videos (default: validation)")
    parser.add_argument("--out-json", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--out-csv", type=Path, required=True, help="the same as a table")
    add_settings(parser, BaselineSettings)
    # of difference and tag; --proposals says how many are kept
    add_settings(parser, SuppressionSettings, without=["keep"])


def run(arguments: argparse.Namespace) -> None:
    """Write the proposals of one baseline for every video of a subset."""
    settings = from_arguments(BaselineSettings, arguments)
    suppression = from_arguments(SuppressionSettings, arguments, keep=settings.proposals)
    annotations = read_annotations(arguments.annotations)
    videos = [video for video in annotations if video.subset == arguments.subset]
    if not videos:
        raise InputError(f"{arguments.annotations}: no video of subset {arguments.subset!r}")
    if arguments.method == "random":
        made = [
            random_proposals(video.video_id, video.duration_seconds, settings) for video in videos
        ]
    elif arguments.method == "sliding":
        lengths = (
            relative_lengths(annotations) if settings.window_prior == "training" else NO_LENGTHS
        )
        made = [sliding_windows(video.duration_seconds, lengths, settings) for video in videos]
    elif arguments.method == "difference":
        if arguments.features is None:
            raise InputError("--method difference needs --features features.h5")
        signals = frame_differences(arguments.features, videos)
        made = [
            motion_proposals(signal, video.duration_seconds, suppression)
            for signal, video in zip(signals, videos, strict=True)
        ]
    else:
        if arguments.probabilities is None:
            raise InputError("--method tag needs --probabilities probabilities.h5")
        signals = actionness(arguments.probabilities, videos)
        made = [
            actionness_proposals(signal, video.duration_seconds, suppression)
            for signal, video in zip(signals, videos, strict=True)
        ]
    results = (
        (video.video_id, result_rows(segments, scores))
        for video, (segments, scores) in zip(videos, made, strict=True)
    )
    write_proposals(results, arguments.out_json, arguments.out_csv)
