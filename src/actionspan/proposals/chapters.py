"""The best proposals of each video as WebVTT chapters for players.

A web page shows them by `<track kind="chapters" src="video.vtt">`, mpv by `--sub-file=video.vtt`,
VLC where the file has the video's name, and `ffmpeg` puts them inside of a video
(docs/tutorial.md). Chapters may not cut through each other, and a reader wants the good ones: those
that overlap no better one, with a score near the best and some length.
"""

import argparse
import html
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from actionspan.errors import InputError
from actionspan.proposals.segments import Row
from actionspan.proposals.settings import ChapterSettings
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.writing import atomic_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="proposals.json")
    parser.add_argument(
        "--videos",
        nargs="+",
        action="extend",
        metavar="ID",
        help="video ids (default: all); a video without proposals gets no chapter",
    )
    parser.add_argument("--out-folder", type=Path, required=True, help="folder for ID.vtt files")
    add_settings(parser, ChapterSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a WebVTT file for each video."""
    from actionspan.proposals.segments import iterate_proposals

    settings = from_arguments(ChapterSettings, arguments)

    def write(video_id: str, rows: Sequence[Row]) -> None:
        if not video_id or Path(video_id).name != video_id:
            raise InputError(f"{arguments.proposals}: video {video_id!r} is not a file name")
        write_chapters(arguments.out_folder / f"{video_id}.vtt", rows, settings)

    chosen = dict.fromkeys(arguments.videos or ())
    for video_id, rows in iterate_proposals(arguments.proposals):
        if arguments.videos is None or video_id in chosen:
            write(video_id, rows)
            chosen.pop(video_id, None)
    for video_id in chosen:
        write(video_id, [])


def choose_chapters(rows: Sequence[Row], settings: ChapterSettings) -> list[tuple[int, Row]]:
    """Choose the best of a video's proposals that do not overlap a better chosen one.

    Returns:
        (rank, proposal) in order of time; rank 1 is the best proposal of all, and of equal scores
        the first row.
    """
    ranked = sorted(rows, key=lambda row: -row["score"])
    long = [
        (rank, row, *_milliseconds(*row["segment"]))
        for rank, row in enumerate(ranked, start=1)
        if row["segment"][1] - row["segment"][0] >= settings.shortest
    ]
    best = max((row["score"] for _, row, *_ in long), default=0.0)
    bar = max(settings.minimum_score, settings.share * best)
    chosen: list[tuple[int, Row]] = []
    spans: list[tuple[int, int]] = []  # of those chosen, in order of time
    for rank, row, start, end in long:
        if len(chosen) == settings.chapters or (row["score"] < bar and "rank" not in row):
            break
        # A cue must last: what rounds to no time is left out.
        place = bisect_left(spans, (start, end))
        free = (place == 0 or spans[place - 1][1] <= start) and (
            place == len(spans) or end <= spans[place][0]
        )
        if start < end and free:
            spans.insert(place, (start, end))
            chosen.append((rank, row))
    return sorted(chosen, key=lambda ranked: _milliseconds(*ranked[1]["segment"]))


def webvtt(rows: Sequence[Row], settings: ChapterSettings | None = None) -> str:
    """Return the chapters of one video's proposals as the text of a WebVTT file.

    A chapter is called by its times, the proposal's `label` where it has one, and its score:
    `2:03–2:09 fall (0.72)`.
    """
    parts = ["WEBVTT\n"]
    for _, row in choose_chapters(rows, settings or ChapterSettings()):
        start, end = _milliseconds(*row["segment"])
        label = html.escape(" ".join(str(row.get("label") or "").split()), quote=False)
        words = [clock_times(*row["segment"]), label, f"({score_text(row)})"]
        parts.append(f"{_clock(start)} --> {_clock(end)}\n{' '.join(filter(None, words))}\n")
    return "\n".join(parts)


def score_text(row: Row) -> str:
    """Return a score as a reader sees it: two decimals, or its first digit if it is smaller.

    An event of unknown chance has a rank instead.
    """
    if "rank" in row:
        return f"no. {row['rank']}"
    score = row["score"]
    return f"{score:.2f}" if score >= 0.01 or score == 0 else f"{score:.1g}"


def clock_times(start: float, end: float) -> str:
    """Return times in seconds as a reader sees them, such as `2:03–2:09`.

    Where both are in the same second, tenths are shown too.
    """
    times = _milliseconds(start, end)
    tenths = len({round(time / 1000) for time in times}) == 1

    def text(time: int) -> str:
        if tenths:
            minutes, rest = divmod(round(time / 100), 600)
            seconds = f"{rest // 10:02}.{rest % 10}"
        else:
            minutes, rest = divmod(round(time / 1000), 60)
            seconds = f"{rest:02}"
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes}:{seconds}"

    return "–".join(map(text, times))


def write_chapters(path: Path, rows: Sequence[Row], settings: ChapterSettings) -> None:
    """Write one video's chapters, atomically."""
    with atomic_path(path) as partial:
        partial.write_text(webvtt(rows, settings), encoding="utf-8", newline="\n")


def _milliseconds(start: float, end: float) -> tuple[int, int]:
    """Return a proposal's start (not before the video's) and end, rounded."""
    return max(round(start * 1000), 0), max(round(end * 1000), 0)


def _clock(milliseconds: int) -> str:
    """Return a time as `hh:mm:ss.mmm`; hours may have more digits."""
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{rest:03}"
