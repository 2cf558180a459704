"""The videos in which one method finds least, as a page to read."""

import argparse
from pathlib import Path

from actionspan.evaluation.worst_videos import read_videos, worst_markdown
from actionspan.files.storage import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--videos", type=Path, required=True, help="scores by video, videos/*.tsv")
    parser.add_argument("--method", required=True, help="the method's name, for the title")
    parser.add_argument("--timelines", help="folder of its timelines (default: it has none)")
    parser.add_argument("--out-markdown", type=Path, required=True, help="a page to read")


def run(arguments: argparse.Namespace) -> None:
    """Write the page."""
    page = worst_markdown(read_videos(arguments.videos), arguments.method, arguments.timelines)
    write_text(arguments.out_markdown, page)
