"""The videos in which one method finds least, as a page to read."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from actionspan.errors import InputError, printable
from actionspan.storage.text import markdown_table
from actionspan.storage.writing import read_tsv, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--videos", type=Path, required=True, help="scores by video, videos/*.tsv")
    parser.add_argument("--method", required=True, help="the method's name, for the title")
    parser.add_argument("--timelines", help="folder of its timelines (default: it has none)")
    parser.add_argument("--out-markdown", type=Path, required=True, help="a page to read")


def run(arguments: argparse.Namespace) -> None:
    """Write the page."""
    page = _worst_markdown(read_videos(arguments.videos), arguments.method, arguments.timelines)
    write_text(arguments.out_markdown, page)


_SHOWN_VIDEOS = 20
COLUMNS = ("video_id", "instances", "proposals", "AR@100", "AUC")


@dataclass(frozen=True, kw_only=True)
class VideoRow:
    """The result of a method in one video."""

    video_id: str
    instances: int
    proposals: int
    average_recall: float
    """AR@100, a fraction."""
    auc: float
    """In percent."""


def read_videos(path: Path) -> list[VideoRow]:
    """Read the table of scores by video (`evaluation/videos/{method}.tsv`), in its order.

    Raises:
        InputError: The file is missing, has no video, or has a row that does not belong to it.
    """
    videos = []
    for number, row in enumerate(read_tsv(path), start=2):
        try:
            video = VideoRow(
                video_id=row["video_id"],
                instances=int(row["instances"]),
                proposals=int(row["proposals"]),
                average_recall=float(row["AR@100"]),
                auc=float(row["AUC"]),
            )
            if video.instances < 1:
                raise ValueError(f"{video.instances} instances")
            if not 0 <= video.average_recall <= 1:
                raise ValueError(f"AR@100 is {video.average_recall:g}")
        except KeyError as error:
            raise InputError(f"{path}: no column {error}; it needs {', '.join(COLUMNS)}") from None
        except ValueError as error:
            raise InputError(f"{path}: row {number}: {error}") from None
        videos.append(video)
    if not videos:
        raise InputError(f"{path}: no video")
    return videos


def _worst_markdown(videos: Sequence[VideoRow], method: str, timelines: str | None = None) -> str:
    """Return the page of the videos with the lowest AR@100, the most instances first in a tie.

    `videos` are all with instances, `timelines` is the folder of the method's figures, if any.
    """
    ranked = sorted(videos, key=lambda row: (row.average_recall, -row.instances, row.video_id))
    worst = ranked[:_SHOWN_VIDEOS]
    weight = sum(video.instances for video in videos)
    mean = sum(video.instances * video.average_recall for video in videos) / weight
    without = sum(video.average_recall == 0 for video in videos)
    lines = [
        f"# Where {method} finds least",
        "",
        f"The {len(worst):,} of {len(videos):,} videos with the lowest AR@100: the mean share of "
        "the video's instances found at tIoU 0.5, 0.55, …, 0.95 with its contribution at an "
        f"average of 100 proposals (ActivityNet's budgets). Of all {weight:,} instances AR@100 is "
        f"{100 * mean:.2f} %. Videos in which nothing is found at any of these tIoU: {without:,}; "
        "those with most instances come first.",
        "",
    ]
    titles, align = ["video", "instances", "proposals", "AR@100", "AUC"], "lrrrr"
    rows = []
    for video in worst:
        counts = [f"{video.instances:,}", f"{video.proposals:,}"]
        scores = [f"{100 * video.average_recall:.2f}", f"{video.auc:.2f}"]
        rows.append([printable(video.video_id), *counts, *scores])
    if timelines is not None:
        figures = [f"{timelines}/{video.video_id}.svg" for video in worst]
        lines += [
            "A figure of each, with truth, curves and proposals, is made on request: "
            f"`snakemake --cores 1 {printable(shlex.quote(figures[0]))}` (with the run's "
            "`--configfile`, if it had one).",
            "",
        ]
        titles.append("timeline")
        align += "l"
        for row, figure in zip(rows, figures, strict=True):
            row.append(f"`{printable(figure)}`")
    return "\n".join([*lines, *markdown_table(align, titles, rows)]) + "\n"
