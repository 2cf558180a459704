"""A table for each video: 1 where a label applies, 0 where it does not, by frame or time bin."""

import argparse
import math
from pathlib import Path

import numpy as np

from actionspan.annotations.formats.times import frames_of
from actionspan.arrays import Float64, Int64
from actionspan.errors import InputError, counted
from actionspan.events.reading import Observed, add_events, need_durations, overlap, read_events


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_events(parser)
    every = "a row for each bin of this length, 1 where a label applies for half of it or more "
    every += "(default: a row for each frame)"
    parser.add_argument("--bin", type=float, metavar="SECONDS", help=every)
    folder = "folder for VIDEO.csv (default: frames)"
    parser.add_argument("-o", "--out", type=Path, default=Path("frames"), help=folder)


def run(arguments: argparse.Namespace) -> None:
    """Write the tables."""
    from actionspan.annotations.formats.rows import csv_text
    from actionspan.storage.text import file_name
    from actionspan.storage.writing import write_text

    if arguments.bin is not None and not 0 < arguments.bin < math.inf:
        raise InputError(f"--bin {arguments.bin}: above 0 seconds")
    observed = read_events(arguments.events, arguments)
    need_durations(observed, arguments.events)
    labels = sorted({one.label for video in observed for one in video.instances})
    for video in observed:
        if arguments.bin is None and not video.rate and not video.file:
            what = f"the frame rate of {video.video_id} is not known"
            raise InputError(f"{arguments.events}: {what}; name its folder with --videos, or --bin")
        times, applies = rows(video, labels, arguments.bin)
        pairs = zip(times, applies, strict=True)
        first = "frame" if arguments.bin is None else "bin"
        cells = ([place, f"{at:.4f}", *row] for place, (at, row) in enumerate(pairs))
        path = arguments.out / f"{file_name(video.video_id)}.csv"
        write_text(path, csv_text((first, "seconds", *labels), cells))
    print(f"{arguments.out}: {counted(len(observed), 'table')}")


def rows(video: Observed, labels: list[str], every: float | None) -> tuple[Float64, Int64]:
    """Return when each of the T frames or bins begins, in seconds, and (T, L) what applies then.

    A label applies to a frame if it does at some time while the frame is shown.
    """
    from actionspan.dataset.timeline import read_timeline  # opens video files

    own = () if every or video.file is None else read_timeline(video.file).seconds
    step = every or 1 / (video.rate or 1)
    exact = video.seconds / step
    count = max(1, round(exact) if every is None else math.ceil(exact - 1e-9))
    times = np.asarray(own) if len(own) else np.arange(count, dtype=np.float64) * step
    applies = np.zeros((len(times), len(labels)), np.int64)
    for column, label in enumerate(labels):
        spans = video.spans(label)
        if every is None:
            for span in spans.tolist():
                first, last = frames_of(span, 1 / step, own)
                applies[first : last + 1, column] = 1
        else:
            for place, start in enumerate(times.tolist()):
                end = min(start + step, video.seconds)
                applies[place, column] = overlap(spans, start, end) >= (end - start) / 2
    return times, applies
