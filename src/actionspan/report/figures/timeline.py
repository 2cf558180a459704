"""Draw one video's curves, truth and proposals."""

import argparse
import sys
from pathlib import Path

from actionspan.annotations.tables import read_annotations
from actionspan.evaluation.files import read_proposals
from actionspan.evaluation.rows import NO_PROPOSALS
from actionspan.temporal.probabilities import video_probabilities


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--video", required=True, help="the video's id")
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--probabilities", type=Path, help="probabilities.h5, if a model made them")
    parser.add_argument("--out", type=Path, required=True, help=".svg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Draw one video's timeline, an empty figure if it was left out of the data set."""
    from actionspan.report.figures.timeline_figure import draw_timeline

    video_id = arguments.video
    videos = {video.video_id: video for video in read_annotations(arguments.annotations)}
    rows = read_proposals(arguments.proposals).get(video_id, NO_PROPOSALS)
    if video_id not in videos:
        print(f"{arguments.annotations}: no video {video_id!r}: it was left out", file=sys.stderr)
        draw_timeline(arguments.out, f"{video_id} (left out)", 1.0, None, (), rows, rows[:, 2])
        return
    video, probabilities = videos[video_id], None
    if arguments.probabilities is not None:
        # None also where the video's decoding broke off: it has no features
        probabilities = video_probabilities(arguments.probabilities, video_id)
    duration, instances = video.duration_seconds, video.instances
    draw_timeline(
        arguments.out, video_id, duration, probabilities, instances, rows[:, :2], rows[:, 2]
    )
