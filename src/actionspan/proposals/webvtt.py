"""A video's best proposals as WebVTT chapters, which players show on the time line.

A web page shows them by `<track kind="chapters" src="video.vtt">`; VLC and mpv show the file next
to the video when it has the video's name, and `ffmpeg -i video.mp4 -i video.vtt …` puts it inside.
Chapters may not cut through each other: only proposals which overlap no better one become chapters.
"""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from actionspan.files.storage import atomic_path
from actionspan.proposals.settings import ChapterSettings
from actionspan.proposals.writing import Row


def choose_chapters(rows: Sequence[Row], settings: ChapterSettings) -> list[tuple[int, Row]]:
    """Choose the best of a video's proposals that do not overlap a better chosen one.

    Returns:
        (rank, proposal) in order of time; rank 1 is the best proposal of all, and of equal scores
        the first row.
    """
    chosen: list[tuple[int, Row]] = []
    spans: list[tuple[int, int]] = []  # of those chosen, in order of time
    for rank, row in enumerate(sorted(rows, key=lambda row: -row["score"]), start=1):
        start, end = _milliseconds(row)
        if len(chosen) == settings.chapters or row["score"] < settings.minimum_score:
            break
        # A cue must last: what rounds to no time is left out.
        place = bisect_left(spans, (start, end))
        free = (place == 0 or spans[place - 1][1] <= start) and (
            place == len(spans) or end <= spans[place][0]
        )
        if start < end and free:
            spans.insert(place, (start, end))
            chosen.append((rank, row))
    return sorted(chosen, key=lambda ranked: _milliseconds(ranked[1]))


def webvtt(rows: Sequence[Row], settings: ChapterSettings | None = None) -> str:
    """Return the chapters of one video's proposals as the text of a WebVTT file.

    A chapter is called by the proposal's `label` where it has one, else "Proposal" and its rank,
    followed by its score.
    """
    parts = ["WEBVTT\n"]
    for rank, row in choose_chapters(rows, settings or ChapterSettings()):
        start, end = _milliseconds(row)
        title = _escape(str(row.get("label") or f"Proposal {rank}"))
        score = f"score {row['score']:.3g}"
        parts.append(f"{_clock(start)} --> {_clock(end)}\n{title} ({score})\n")
    return "\n".join(parts)


def write_chapters(path: Path, rows: Sequence[Row], settings: ChapterSettings) -> None:
    """Write one video's chapters, atomically."""
    with atomic_path(path) as partial:
        partial.write_text(webvtt(rows, settings), encoding="utf-8", newline="\n")


def _milliseconds(row: Row) -> tuple[int, int]:
    """Return a proposal's start (not before the video's) and end, rounded."""
    start, end = row["segment"]
    return max(round(start * 1000), 0), max(round(end * 1000), 0)


def _clock(milliseconds: int) -> str:
    """Return a time as `hh:mm:ss.mmm`; hours may have more digits."""
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{rest:03}"


def _escape(label: str) -> str:
    """Return a label as one line of cue text without markup."""
    line = " ".join(label.split())
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
