"""What a reader gets from one method: precision, recall and repeats of the first few events.

An event is right where it is the first of its video's list to reach a tIoU of 0.5 with an instance,
as in `proposals.events.right_events` and for average precision. So a second event of an instance is
wrong.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.arrays import Float64
from actionspan.dataset.tables import Annotation
from actionspan.errors import InputError, counted
from actionspan.evaluation.files import add_inputs, as_array, read_subset, segments_of
from actionspan.evaluation.reliability import (
    ScoreBin,
    calibration_error,
    error_by_luck,
    score_bins,
    scored_proposals,
)
from actionspan.evaluation.rows import NO_PROPOSALS, check_truth, match_proposals
from actionspan.evaluation.score import check_common
from actionspan.files.storage import write_json, write_text
from actionspan.files.text import markdown_table
from actionspan.proposals.chapters import choose_chapters
from actionspan.proposals.segments import read_proposals
from actionspan.proposals.settings import ChapterSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_inputs(parser)
    events = "the reader's list, in the same format (default: the chapters of the proposals)"
    parser.add_argument("--events", type=Path, nargs="?", help=events)
    parser.add_argument("--out-json", type=Path, required=True, help="the record")
    add_settings(parser, ChapterSettings)


def run(arguments: argparse.Namespace) -> None:
    """Judge the reader's list, its chapters, and the proposals without any reduction."""
    settings = from_arguments(ChapterSettings, arguments)
    annotations, subset = arguments.annotations, arguments.subset
    videos = read_subset(annotations, subset)
    proposals = read_proposals(arguments.proposals)
    truth = {video.video_id: video.instances for video in videos}
    check_common(truth, proposals, annotations, arguments.proposals, subset)
    source = arguments.events or arguments.proposals
    shown = read_proposals(source) if arguments.events else proposals
    chapters = {
        video: [row for _, row in choose_chapters(rows, settings)] for video, rows in shown.items()
    }
    lists = {"events": (source, shown)} if arguments.events else {}
    lists |= {"chapters": (source, chapters), "proposals": (arguments.proposals, proposals)}
    figures = {}
    for name, (path, rows) in lists.items():
        try:
            arrays = {video: as_array(given) for video, given in rows.items()}
            figures[name] = reader_figures(videos, arrays)
        except ValueError as error:
            raise InputError(f"{path}, {annotations}: {error}") from None
    heading = {"method": arguments.method, "subset": subset}
    write_text(arguments.out_markdown, reader_markdown(heading, figures))
    write_json(arguments.out_json, reader_record(heading, figures))


NUMBERS = (1, 3, 5, 10)
BINS = 5  # of scores; a reader's list is short
_LOOKED_AT = 5  # ranks among which repeats are counted
_REPEATED = 0.5  # of the shorter of two events; a repeat shares more


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """How many events are right, of those that are given and of the instances to find."""

    right: int
    given: int
    instances: int

    @property
    def precision(self) -> float | None:
        """Share of the given events that is right; None where nothing is given."""
        return self.right / self.given if self.given else None

    @property
    def recall(self) -> float:
        """Share of the instances that is found; every right event finds one."""
        return self.right / self.instances

    def scores(self) -> dict[str, float | None]:
        """Return both, as the record has them."""
        return {"precision": self.precision, "recall": self.recall}


@dataclass(frozen=True, kw_only=True)
class ReaderFigures:
    """What a list is worth to a reader of a subset's videos."""

    videos: int
    empty: int
    """Videos of which nothing is given."""
    all: Judgement
    first: Mapping[int, Judgement]
    """Of the best 1, 3, 5 and 10 events of each video."""
    repeats: float | None
    """Share of the events of ranks 2 to 5 that repeat a better one; None where there is none."""
    bins: Sequence[ScoreBin]
    """The events by score; `first[0]` of a bin is the share that is right."""
    error: float | None
    """Expected calibration error of the score as the chance to be right; None where a score lies
    outside 0…1, or where there is no event."""
    error_by_luck: float | None
    """What it would be on average if each score were exactly the chance to be right."""

    @property
    def per_video(self) -> float:
        """How many events a video has on average."""
        return self.all.given / self.videos


def reader_figures(
    annotations: Sequence[Annotation], lists: Mapping[str, ArrayLike]
) -> ReaderFigures:
    """Judge the lists of a subset's videos as a reader does, who starts at the best event.

    Args:
        annotations: The videos of one subset, also those without an instance, of which every event
            is wrong. Lists of other videos are left out.
        lists: For each video id, (P, 3) start and end in seconds and score, in any order.

    Raises:
        ValueError: A row is reversed or not finite, there is no instance at all, or two ids of
            the lists mean one video.
    """
    truth = check_truth({video.video_id: segments_of(video) for video in annotations})
    matched, _ = match_proposals(lists, truth)
    ranked = [matched.get(name, NO_PROPOSALS)[:, :2] for name in truth]
    scored = scored_proposals(annotations, lists)  # in the same order
    ends = np.cumsum([len(rows) for rows in ranked])
    right = np.split(scored.first[:, 0], ends[:-1])
    instances = sum(map(len, truth.values()))

    def judge(number: int | None) -> Judgement:
        chosen = np.concatenate([row[:number] for row in right])
        return Judgement(right=int(chosen.sum()), given=len(chosen), instances=instances)

    repeated = np.concatenate([repeats(rows[:_LOOKED_AT])[1:] for rows in ranked])
    bins = score_bins(scored, BINS)
    return ReaderFigures(
        videos=len(truth),
        empty=sum(not len(rows) for rows in ranked),
        all=judge(None),
        first={number: judge(number) for number in NUMBERS},
        repeats=float(repeated.mean()) if len(repeated) else None,
        bins=bins,
        error=calibration_error(scored, bins, lambda row: row.first[0]),
        error_by_luck=error_by_luck(scored, bins),
    )


def repeats(events: Float64) -> NDArray[np.bool_]:
    """Return whether each event shares more than half of the shorter of both with a better one.

    Args:
        events: (K, 2) starts and ends, best first.
    """
    starts, ends = events.T
    shared = np.minimum(ends[:, None], ends) - np.maximum(starts[:, None], starts)  # (K, K)
    shorter = np.minimum((ends - starts)[:, None], ends - starts)
    return np.asarray(np.tril(shared > _REPEATED * shorter, -1).any(axis=1))


_LISTS = {
    "events": "events: distinct events, down to a bar (`events.json`).",
    "chapters": "chapters: the best that overlap no better one, as a player shows them.",
    "proposals": "proposals: `proposals.json` as it is, which is made for AR@100.",
}


def reader_record(
    heading: Mapping[str, str], figures: Mapping[str, ReaderFigures]
) -> dict[str, Any]:
    """Return what `reader/{method}.json` holds.

    Args:
        heading: `method` and `subset`.
        figures: Of each list, `events`, `chapters` or `proposals`, the reader's first.
    """
    one = next(iter(figures.values()))
    lists = {
        name: {
            "per_video": each.per_video,
            "videos_without": each.empty,
            **each.all.scores(),
            "first": {str(number): judged.scores() for number, judged in each.first.items()},
            "repeats": each.repeats,
            "calibration_error": each.error,
            "calibration_error_of_exact_scores": each.error_by_luck,
            "reliability": [
                {
                    "lowest": row.lowest,
                    "highest": row.highest,
                    "events": row.proposals,
                    "mean_score": row.mean_score,
                    "right": row.first[0],
                }
                for row in each.bins
            ],
        }
        for name, each in figures.items()
    }
    return {**heading, "videos": one.videos, "instances": one.all.instances, "lists": lists}


def reader_markdown(heading: Mapping[str, str], figures: Mapping[str, ReaderFigures]) -> str:
    """Return the page: a row for each list, then what the score of the reader's list means."""
    name, shown = next(iter(figures.items()))
    titles = ["list", "a video", "precision", "recall"]
    titles += [*(f"first {number}" for number in NUMBERS), "repeats"]
    rows = [
        [
            name,
            f"{each.per_video:.1f}",
            _percent(each.all.precision),
            _percent(each.all.recall),
            *(f"{_percent(one.precision)} / {_percent(one.recall)}" for one in each.first.values()),
            _percent(each.repeats),
        ]
        for name, each in figures.items()
    ]
    lines = [
        f"# What a reader gets from {heading['method']}",
        "",
        f"Subset {heading['subset']}: {counted(shown.videos, 'video')}, "
        f"{counted(shown.all.instances, 'instance')}. "
        "An event is right where it is the first of its video's list to reach a tIoU of 0.5 with "
        "an instance. Precision is the share of events that is right, recall the share of "
        "instances that is found, in percent: of all events, and (precision / recall) of the "
        "first few of each video. Repeats: the share of ranks 2 to 5 that overlaps a better event "
        "by more than half of the shorter.",
        "",
        *markdown_table("l" + "r" * (len(titles) - 1), titles, rows),
        "",
        *(f"- {_LISTS[name]}" for name in figures),
        "",
        f"## The score of the {name}",
        "",
    ]
    if not shown.bins:
        return "\n".join([*lines, "Nothing is shown."]) + "\n"
    if shown.error is None:
        lines.append("Scores lie outside 0…1 and cannot be read as the chance to be right.")
    else:
        lines.append(
            "Read as the chance to be right, the score is off by "
            f"**{shown.error:.3f}** on average over the bins (expected calibration error). If it "
            f"were exactly that chance, so few events would be off by {shown.error_by_luck:.3f}."
        )
    table = [
        [
            f"{row.lowest:.3g} – {row.highest:.3g}",
            row.proposals,
            f"{row.mean_score:.3g}",
            f"{_percent(row.first[0])} %",
        ]
        for row in reversed(shown.bins)
    ]
    titles = ["score", "events", "mean score", "right"]
    return "\n".join([*lines, "", *markdown_table("lrrr", titles, table)]) + "\n"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
