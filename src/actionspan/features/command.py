"""The commands `actionspan features extract`, `external` and `rescale`."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.features.settings import EncoderSettings, ExternalSettings, RescaleSettings
from actionspan.settings import add_arguments, from_arguments


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the stage's commands."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    step = steps.add_parser("extract", help="frames and flow of a shard to features a snippet")
    step.add_argument("--frames", type=Path, required=True, help="video/frames/{shard}.h5")
    step.add_argument("--flow", type=Path, required=True, help="video/flow/{shard}.h5")
    step.add_argument("--threads", type=int, default=1, help="CPU threads (default: 1)")
    step.add_argument("--out", type=Path, required=True, help="features/shards/{shard}.h5")
    add_arguments(step, EncoderSettings)
    step.set_defaults(run=run_extract)

    step = steps.add_parser("external", help="features people already have to a feature shard")
    step.add_argument(
        "--folder", type=Path, required=True, help="one .npy, .csv, .pkl or .h5 a video"
    )
    step.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    step.add_argument("--out", type=Path, required=True, help="features/shards/external.h5")
    add_arguments(step, ExternalSettings)
    step.set_defaults(run=run_external)

    step = steps.add_parser("rescale", help="all shards to features.h5, standardised")
    step.add_argument("--shards", type=Path, nargs="+", required=True, help="feature shards")
    step.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    step.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    step.add_argument("--out", type=Path, required=True, help="features/features.h5")
    step.add_argument(
        "--on-bad-input",
        choices=["skip", "fail"],
        default="skip",
        help="leave out videos without features, or stop (default: skip)",
    )
    add_arguments(step, RescaleSettings)
    step.set_defaults(run=run_rescale)


def run_extract(arguments: argparse.Namespace) -> int:
    """Compute the features of one shard."""
    settings = from_arguments(EncoderSettings, arguments)
    if arguments.threads < 1:
        raise InputError(f"--threads {arguments.threads}: at least 1")

    import cv2
    import torch

    from actionspan.features.extraction import extract
    from actionspan.running.allocator import keep_freed_memory

    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    extract(arguments.frames, arguments.flow, arguments.out, settings)
    return 0


def run_external(arguments: argparse.Namespace) -> int:
    """Read a folder of features."""
    settings = from_arguments(ExternalSettings, arguments)

    from actionspan.features.importing import import_features

    import_features(arguments.folder, arguments.videos, arguments.out, settings)
    return 0


def run_rescale(arguments: argparse.Namespace) -> int:
    """Make features.h5."""
    settings = from_arguments(RescaleSettings, arguments)

    from actionspan.features.collect import collect

    collect(
        arguments.shards,
        arguments.videos,
        arguments.annotations,
        arguments.out,
        settings,
        all_needed=arguments.on_bad_input == "fail",
    )
    return 0
