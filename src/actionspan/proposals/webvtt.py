"""A video's best proposals as WebVTT chapters, which players show on the time line.

A web page shows them by `<track kind="chapters" src="video.vtt">`; VLC and mpv show the file beside
the video when it has the video's name, and `ffmpeg -i video.mp4 -i video.vtt …` puts it inside.
Chapters may not cut through each other, so that only proposals which overlap no better one become
chapters, in order of time.
"""

from collections.abc import Sequence
from pathlib import Path

from actionspan.files.storage import atomic_path
from actionspan.proposals.settings import ChapterSettings
from actionspan.proposals.writing import Row


def choose_chapters(rows: Sequence[Row], settings: ChapterSettings) -> list[tuple[int, Row]]:
    """Choose the best proposals that do not overlap a better chosen one.

    Args:
        rows: One video's proposals in any order; equal scores keep it.
        settings: How many, and the least score.

    Returns:
        (rank, proposal) in order of time; rank 1 is the best proposal of all.
    """
    chosen: list[tuple[int, Row]] = []
    for rank, row in enumerate(sorted(rows, key=lambda row: -row["score"]), start=1):
        start, end = _milliseconds(row)
        if len(chosen) == settings.chapters or row["score"] < settings.minimum_score:
            break
        # A cue must last: what rounds to no time is left out.
        if start < end and all(
            end <= _milliseconds(other)[0] or _milliseconds(other)[1] <= start
            for _, other in chosen
        ):
            chosen.append((rank, row))
    return sorted(chosen, key=lambda ranked: _milliseconds(ranked[1]))


def webvtt(rows: Sequence[Row], settings: ChapterSettings | None = None) -> str:
    """Return one video's chapters as the text of a WebVTT file.

    A chapter is called by the proposal's `label` where it has one, else "Proposal" and its rank,
    followed by its score.

    Args:
        rows: One video's proposals, `{"score", "segment": [start, end] in seconds}`.
        settings: Which proposals become chapters.
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
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}.{rest:03}"


def _escape(label: str) -> str:
    """Return a label as one line of cue text without markup."""
    line = " ".join(label.split())
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
