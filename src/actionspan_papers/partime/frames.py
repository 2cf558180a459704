"""Keep consecutive small grey frames of some videos, as streams for the experiments."""

import argparse
from pathlib import Path

from actionspan.annotations.tables import at_files, read_videos
from actionspan.errors import InputError
from actionspan.settings import add_settings, from_arguments
from actionspan_papers.partime.settings import StreamSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    places = "where videos are now, the only ones to choose from (default: the paths of the table)"
    parser.add_argument("--files", type=Path, nargs="*", default=[], metavar="FILE", help=places)
    parser.add_argument("--out", type=Path, required=True, help="HDF5 file to write")
    add_settings(parser, StreamSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the frames of each video."""
    settings = from_arguments(StreamSettings, arguments)
    listed = sorted(read_videos(arguments.videos), key=lambda video: video.video_id)
    if arguments.files:
        given = {file.stem for file in arguments.files}
        listed = at_files([v for v in listed if v.video_id in given], arguments.files)
    chosen = [video for video in listed if video.path != Path()][: settings.most_videos]
    if len(chosen) < 2:
        raise InputError(
            f"{arguments.videos}: {len(chosen)} videos with a file; the streams of paper 002 want "
            "two or more"
        )
    from actionspan_papers.partime.footage import write_footage

    write_footage(arguments.out, chosen, settings)
