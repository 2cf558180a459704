"""A video's events in one image: the middle frame of each."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actionspan.arrays import UInt8
from actionspan.errors import InputError
from actionspan.proposals.chapters import choose_chapters, clock_times, score_text
from actionspan.proposals.segments import Row, iterate_proposals
from actionspan.proposals.settings import ChapterSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--video", type=Path, required=True, help="file, named by the id")
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    events = "events.json, the events to show (default: the chapters of the proposals)"
    parser.add_argument("--events", type=Path, nargs="?", help=events)
    parser.add_argument("--out", type=Path, required=True, help=".jpg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Write the sheet.

    Raises:
        InputError: The video is missing, or the proposals are in another format.
    """
    if not arguments.video.is_file():
        raise InputError(f"{arguments.video}: no such file")
    source, video = arguments.events or arguments.proposals, arguments.video
    rows = next((rows for name, rows in iterate_proposals(source) if name == video.stem), [])
    if arguments.events is None:
        rows = [row for _, row in choose_chapters(rows, ChapterSettings(chapters=_MOST))]
    write_sheet(arguments.out, video, rows)


_MOST = 24  # events on a sheet
_HEIGHT, _WIDTH = 150, 1560  # pixels: of an image, and about of a sheet
_GAP, _CAPTION, _TITLE = 10, 22, 34  # pixels
_NARROWEST, _LETTER = 200, 6.3  # pixels: of an image's place, and about of a letter below it
_DOTS = 100  # pixels an inch


def write_sheet(path: Path, video: Path, rows: Sequence[Row]) -> None:
    """Write the contact sheet of a video's best 24 events as .jpg or .png, the best first.

    A grey box replaces what cannot be decoded.
    """
    from actionspan.video.thumbnails import read_thumbnails

    shown = sorted(rows, key=lambda row: -row["score"])[:_MOST]
    middles = [float(sum(row["segment"])) / 2 for row in shown]
    times = sorted(set(middles))
    decoded = dict(zip(times, read_thumbnails(video, times, _HEIGHT), strict=True))
    pictures = [decoded[middle] for middle in middles]
    rgb = [None if each is None else each.rgb for each in pictures]
    _draw(path, video.stem, shown, rgb)


def _draw(path: Path, title: str, rows: Sequence[Row], pictures: Sequence[UInt8 | None]) -> None:
    """Draw images (h, w, 3) in rows from the left, each with its caption below."""
    from matplotlib.figure import Figure

    from actionspan.storage.figures import INK, QUIET, RULE, fonts_for, house_style, save_figure

    wide = max([_NARROWEST, *(each.shape[1] for each in pictures if each is not None)])
    columns = max(1, min(len(rows), _WIDTH // (wide + _GAP)))
    lines = max(1, math.ceil(len(rows) / columns))
    cell = _HEIGHT + _CAPTION + _GAP
    width = _GAP + max(columns * (wide + _GAP), 300)
    height = _TITLE + lines * cell
    letters = int(wide / _LETTER)
    captions = [_caption(rank, row, letters) for rank, row in enumerate(rows, start=1)]
    nothing = "no events"
    colour = [int(RULE[place : place + 2], 16) for place in (1, 3, 5)]
    grey = np.full((_HEIGHT, wide, 3), colour, np.uint8)
    with house_style(), fonts_for([title, nothing, *captions]) as drawable:
        figure = Figure(figsize=(width / _DOTS, height / _DOTS), dpi=_DOTS)

        def text(x: float, y: float, words: str, size: float, colour: str) -> None:
            figure.text(
                x / width, 1 - y / height, drawable[words], fontsize=size, color=colour, va="center"
            )

        text(_GAP, _TITLE / 2, title, 11, INK)
        if not rows:
            text(_GAP, _TITLE + cell / 2, nothing, 8, QUIET)
        for place, (caption, picture) in enumerate(zip(captions, pictures, strict=True)):
            left = _GAP + place % columns * (wide + _GAP)
            top = _TITLE + place // columns * cell
            box = (left / width, 1 - (top + _HEIGHT) / height, wide / width, _HEIGHT / height)
            axes = figure.add_axes(box)
            axes.axis("off")
            axes.imshow(grey if picture is None else picture, interpolation="none")
            axes.set_anchor("W")
            text(left, top + _HEIGHT + _CAPTION / 2, caption, 8, INK)
        save_figure(figure, path)


def _caption(rank: int, row: Row, letters: int) -> str:
    """Return the caption of an image; a long label is cut."""
    begin, end = f"{rank}. {clock_times(*row['segment'])}", f"({score_text(row)})"
    label = " ".join(str(row.get("label") or "").split())
    room = max(letters - len(begin) - len(end) - 2, 4)
    label = label if len(label) <= room else f"{label[: room - 1]}…"
    return " ".join(filter(None, [begin, label, end]))
