"""Soft-NMS on any proposals in ActivityNet form."""

import argparse
from pathlib import Path

from actionspan.annotations.tables import read_annotations
from actionspan.errors import InputError
from actionspan.proposals.settings import SuppressionSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet form to read")
    parser.add_argument(
        "--annotations",
        type=Path,
        help="annotations with the videos' durations; without them a video lasts to the end of its "
        "last proposal",
    )
    parser.add_argument("--out", type=Path, required=True, help="ActivityNet form to write")
    add_settings(parser, SuppressionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Apply Soft-NMS to a file of proposals."""
    from actionspan.proposals.segments import read_proposals, write_proposals
    from actionspan.proposals.suppression import suppress_rows

    settings = from_arguments(SuppressionSettings, arguments)
    proposals = read_proposals(arguments.proposals)
    durations: dict[str, float] = {}
    if arguments.annotations is not None:
        videos = read_annotations(arguments.annotations)
        durations = {video.video_id: video.duration_seconds for video in videos}
        if missing := sorted(set(proposals) - set(durations)):
            line = f"no video {missing[0]!r}, which {arguments.proposals} has"
            raise InputError(f"{arguments.annotations}: {line}")
    results = (
        (video_id, suppress_rows(rows, durations.get(video_id), settings))
        for video_id, rows in proposals.items()
    )
    write_proposals(results, arguments.out)
