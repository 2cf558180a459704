"""Count, rate and duration of events, by video, label and time bin, as a table and a chart."""

import argparse
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from actionspan.errors import InputError
from actionspan.events.reading import Observed, add_events, need_durations, overlap, read_events


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: a label in a video, or in a bin of it.

    An event counts where it begins, and `mean_seconds` is the mean length of those that count.
    `total_seconds` and `share` are of the time inside the bin in which the label applies, where
    events that overlap count once.
    """

    video: str
    label: str
    bin_start: float
    bin_end: float
    count: int
    per_minute: float
    total_seconds: float
    mean_seconds: float | None
    share: float


COLUMNS = tuple(field.name for field in fields(Row))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_events(parser)
    every = "length of a time bin in seconds (default: a video is one)"
    parser.add_argument("--bin", type=float, metavar="SECONDS", help=every)
    out = "the table to write (default: to standard output)"
    parser.add_argument("-o", "--out", type=Path, metavar="FILE.csv", help=out)
    chart = "a chart of the shares of time to write, .svg, .png or .pdf"
    parser.add_argument("--chart", dest="out_chart", type=Path, metavar="FILE", help=chart)


def run(arguments: argparse.Namespace) -> None:
    """Write the table, and the chart if it is asked for."""
    from actionspan.annotations.formats.rows import csv_text
    from actionspan.storage.writing import write_text

    if arguments.bin is not None and not 0 < arguments.bin < math.inf:
        raise InputError(f"--bin {arguments.bin}: above 0 seconds")
    observed = read_events(arguments.events, arguments)
    need_durations(observed, arguments.events)
    rows = list(budget(observed, arguments.bin))
    text = csv_text(COLUMNS, ([_cell(value) for value in astuple(row)] for row in rows))
    if arguments.out is None:
        print(text, end="")
    else:
        write_text(arguments.out, text)
    if arguments.out_chart is not None:
        draw(rows, arguments.out_chart)


def budget(observed: list[Observed], every: float | None = None) -> Iterator[Row]:
    """Yield the rows of all videos, labels and bins; every label that occurs in each video.

    Args:
        observed: Videos of known duration.
        every: Length of a bin in seconds, the last of a video is shorter; None: one bin.
    """
    labels = sorted({one.label for video in observed for one in video.instances})
    for video in observed:
        size = every or video.seconds
        bins = max(1, math.ceil(video.seconds / size - 1e-9))
        for label in labels:
            spans = video.spans(label)
            for number in range(bins):
                start, end = number * size, min((number + 1) * size, video.seconds)
                last = number == bins - 1
                begun = [
                    one.end - one.start
                    for one in video.instances
                    if one.label == label and start <= one.start and (last or one.start < end)
                ]
                total = overlap(spans, start, end)
                yield Row(
                    video=video.video_id,
                    label=label,
                    bin_start=start,
                    bin_end=end,
                    count=len(begun),
                    per_minute=60 * len(begun) / (end - start),
                    total_seconds=total,
                    mean_seconds=sum(begun) / len(begun) if begun else None,
                    share=total / (end - start),
                )


def _cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return "" if value is None else value


def draw(rows: list[Row], path: Path) -> None:
    """Draw the share of time of each label: bars by video, or lines over the bins of each."""
    from matplotlib.figure import Figure

    from actionspan.storage.figures import COLOURS, house_style, save_figure

    labels = sorted({row.label for row in rows})
    videos = sorted({row.video for row in rows})
    binned = len(rows) > len(labels) * len(videos)
    with house_style():
        height = 1.6 * len(videos) if binned else 0.8 + 0.32 * len(videos)
        figure = Figure(figsize=(7, max(height, 2)), layout="constrained")
        panels = figure.subplots(len(videos) if binned else 1, squeeze=False)[:, 0]
        for place, label in enumerate(labels):
            colour = COLOURS[place % len(COLOURS)]
            own = [row for row in rows if row.label == label]
            if binned:
                for axes, video in zip(panels, videos, strict=True):
                    bins = [row for row in own if row.video == video]
                    middles = [(row.bin_start + row.bin_end) / 2 for row in bins]
                    shares = [100 * row.share for row in bins]
                    axes.plot(middles, shares, color=colour, label=label, marker=".")
                    axes.set(title=video, ylabel="% of time", xlim=(0, bins[-1].bin_end))
            else:
                thick = 0.8 / len(labels)
                at = [videos.index(row.video) + (place + 0.5) * thick - 0.4 for row in own]
                shares = [100 * row.share for row in own]
                panels[0].barh(at, shares, thick * 0.92, color=colour, label=label)
        if binned:
            panels[-1].set_xlabel("time (s)")
        else:
            panels[0].set(xlabel="% of time", yticks=range(len(videos)), ylim=(-0.6, None))
            panels[0].set_yticklabels(videos)
            panels[0].invert_yaxis()
        panels[0].legend(frameon=False)
        save_figure(figure, path)
