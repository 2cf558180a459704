"""A reader's list of one method: precision, recall and repeats of the first few events.

An event is right where it is the first of its video's list to reach a tIoU of 0.5 with an instance,
as in `proposals.selection.right_events` and for average precision. So a second event of an instance
is wrong.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.annotations.tables import Annotation
from actionspan.arrays import Float64
from actionspan.errors import counted
from actionspan.evaluation import reliability
from actionspan.evaluation.files import add_inputs, as_array, blaming, read_subset, segments_of
from actionspan.evaluation.rows import NO_PROPOSALS, check_truth, match_proposals
from actionspan.evaluation.score import check_common
from actionspan.evaluation.summary import percent, seconds
from actionspan.proposals.chapters import choose_chapters
from actionspan.proposals.segments import read_proposals
from actionspan.proposals.selection import found_instances, shares_much
from actionspan.proposals.settings import ChapterSettings
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.text import markdown_table
from actionspan.storage.writing import write_json, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_inputs(parser, json="the record")
    events = "the reader's list, in the same format (default: the chapters of the proposals)"
    parser.add_argument("--events", type=Path, nargs="?", help=events)
    add_settings(parser, ChapterSettings)


def run(arguments: argparse.Namespace) -> None:
    """Judge the reader's list, its chapters, and the proposals without any reduction."""
    # 1. read the videos and their lists
    settings = from_arguments(ChapterSettings, arguments)
    annotations, subset = arguments.annotations, arguments.subset
    videos = read_subset(annotations, subset)
    proposals = read_proposals(arguments.proposals)
    truth = {video.video_id: video.instances for video in videos}
    check_common(truth, proposals, annotations, arguments.proposals, subset)
    source = arguments.events or arguments.proposals
    shown = read_proposals(source) if arguments.events else proposals
    # 2. name the lists, the reader's first
    chapters = {
        video: [row for _, row in choose_chapters(rows, settings)] for video, rows in shown.items()
    }
    lists = {"events": (source, shown)} if arguments.events else {}
    lists |= {"chapters": (source, chapters), "proposals": (arguments.proposals, proposals)}
    # 3. judge each, and write the record and the page
    judged = {}
    for name, (path, rows) in lists.items():
        with blaming(path, annotations):
            judged[name] = judge_list(videos, {video: as_array(row) for video, row in rows.items()})
    record = {
        "method": arguments.method,
        "subset": subset,
        "videos": len(videos),
        "instances": sum(len(video.instances) for video in videos),
        "lists": judged,
    }
    write_text(arguments.out_markdown, reader_markdown(record))
    write_json(arguments.out_json, record)


NUMBERS = (1, 3, 5, 10)
BINS = 5  # of scores; a reader's list is short
_LOOKED_AT = 5  # ranks among which repeats are counted
_REPEATED = 0.5  # of the shorter of two events; a repeat shares more


def judge_list(annotations: Sequence[Annotation], lists: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """Judge the lists of a subset's videos as a reader does, who starts at the best event.

    Args:
        annotations: The videos of one subset, also those without an instance, of which every event
            is wrong. Lists of other videos are left out.
        lists: For each video id, (P, 3) start and end in seconds and score, in any order.

    Returns:
        The record of a list. `precision` is the share of the events that are right, None
        where there is none; `recall` is the share of the instances that are found. Both are also
        given for the `first` 1, 3, 5 and 10 events of each video, with the recall that is the
        `most` so few can have (`most_found`), and the recall of `as_many` events as the video has
        instances. `end_errors` are the median distances in seconds of starts and of ends of right
        events from their instances', None where no event is right. `repeats` is the share
        of the events of ranks 2 to 5 that repeat a better one, None where there is none.
        `calibration_error` is the error of the score as the chance to be right, None without events
        or where a score lies outside 0…1; the next is its mean if each score were that chance.
        `ranking` is the area under the ROC curve of the scores, see `reliability.ranking`.

    Raises:
        ValueError: A row is reversed or not finite, no video has an instance, or two ids of
            the lists mean one video.
    """
    # 1. the lists, best first, and which of their events are right
    truth = check_truth({video.video_id: segments_of(video) for video in annotations})
    matched, _ = match_proposals(lists, truth)
    ranked = [matched.get(name, NO_PROPOSALS)[:, :2] for name in truth]
    scored = reliability.scored_proposals(annotations, lists)  # in the same order
    lengths = [len(rows) for rows in ranked]
    right = np.split(scored.first[:, 0], np.cumsum(lengths)[:-1])
    counts = [len(segments) for segments in truth.values()]
    instances = sum(counts)

    def judge(number: int | None) -> dict[str, float | None]:
        chosen = np.concatenate([row[:number] for row in right])
        hits = int(chosen.sum())  # each finds an instance
        precision = hits / len(chosen) if len(chosen) else None
        return {"precision": precision, "recall": hits / instances}

    # 2. as many events as instances, and the ends of those that are right
    as_many = sum(float(row[:count].sum()) for row, count in zip(right, counts, strict=True))
    errors = [np.empty((0, 2))]
    for rows, segments in zip(ranked, truth.values(), strict=True):
        found = found_instances(rows, segments)
        errors.append(np.abs(rows - segments[found])[found >= 0] if len(segments) else errors[0])
    ends = np.concatenate(errors)
    medians = np.median(ends, axis=0).tolist() if len(ends) else (None, None)
    # 3. precision, recall, repeats and the meaning of the score
    repeated = np.concatenate([repeats(rows[:_LOOKED_AT])[1:] for rows in ranked])
    bins = reliability.score_bins(scored, BINS)
    return {
        "per_video": len(scored.scores) / len(truth),
        "videos_without": sum(not len(rows) for rows in ranked),
        **judge(None),
        "first": {
            str(number): {**judge(number), "most": most_found(counts, number)} for number in NUMBERS
        },
        "as_many": as_many / instances,
        "end_errors": dict(zip(("start", "end"), medians, strict=True)),
        "repeats": float(repeated.mean()) if len(repeated) else None,
        "calibration_error": reliability.calibration_error(scored, bins, lambda row: row.first[0]),
        "calibration_error_of_exact_scores": reliability.error_by_luck(scored, bins),
        "ranking": reliability.ranking(scored),
        "reliability": [
            {
                "lowest": row.lowest,
                "highest": row.highest,
                "events": row.proposals,
                "mean_score": row.mean_score,
                "right": row.first[0],
            }
            for row in bins
        ],
    }


def most_found(instances: Sequence[int], number: int) -> float:
    """Return the share of the instances that the first `number` events of each video can find.

    An event finds one. `instances` are how many each video has, in all at least one.
    """
    return sum(min(count, number) for count in instances) / sum(instances)


def repeats(events: Float64) -> NDArray[np.bool_]:
    """Return whether each of (K, 2) events, best first, repeats a better one.

    It does if it shares more than half of the shorter of both.
    """
    return np.asarray(np.tril(shares_much(events, events, _REPEATED), -1).any(axis=1))


_BOTH = ("precision", "recall")
_LISTS = {
    "events": "events: distinct events, down to a bar (`events.json`).",
    "chapters": "chapters: the best that overlap no better one, as a player shows them.",
    "proposals": "proposals: `proposals.json` as it is, which is made for AR@100.",
}


def reader_markdown(record: Mapping[str, Any]) -> str:
    """Return the page: a row for each list, then the meaning of the score of the reader's list."""
    # 1. a row for each list
    name, shown = next(iter(record["lists"].items()))
    titles = ["list", "a video", "precision", "recall", "as many", "ends off, s"]
    titles += [*(f"first {number}" for number in NUMBERS), "repeats"]
    rows = []
    for title, each in record["lists"].items():
        pairs = [[percent(one[key]) for key in _BOTH] for one in (each, *each["first"].values())]
        off = " / ".join(seconds(value) for value in each["end_errors"].values())
        cells = [*pairs[0], percent(each["as_many"]), off, *map(" / ".join, pairs[1:])]
        cells.append(percent(each["repeats"]))
        rows.append([title, f"{each['per_video']:.1f}", *cells])
    most = " / ".join(percent(one["most"]) for one in shown["first"].values())
    lines = [
        f"# A reader's list of {record['method']}",
        "",
        f"Subset {record['subset']}: {counted(record['videos'], 'video')}, "
        f"{counted(record['instances'], 'instance')}. "
        "An event is right where it is the first of its video's list to reach a tIoU of 0.5 with "
        "an instance. Precision is the share of events that is right, recall the share of "
        "instances that is found, in percent: of all events, and (precision / recall) of the "
        "first few of each video. As many: recall of as many events as a video has instances. Ends "
        "off: median distance of starts / ends of right events. Repeats: the share of ranks 2 to "
        "5 that overlaps a better event by more than half of the shorter. As an event finds one "
        f"instance, the first {' / '.join(map(str, NUMBERS))} find {most} % at most.",
        "",
        *markdown_table("l" + "r" * (len(titles) - 1), titles, rows),
        "",
        *(f"- {_LISTS[each]}" for each in record["lists"]),
        "",
        f"## The score of the {name}",
        "",
    ]
    # 2. the meaning of the score of the reader's list
    if not shown["reliability"]:
        return "\n".join([*lines, "Nothing is shown."]) + "\n"
    if shown["calibration_error"] is None:
        lines.append("Scores lie outside 0…1 and cannot be read as the chance to be right.")
    else:
        lines.append(
            "Read as the chance to be right, the score is off by "
            f"**{shown['calibration_error']:.3f}** on average over the bins (expected calibration "
            "error). If it were exactly that chance, so few events would be off by "
            f"{shown['calibration_error_of_exact_scores']:.3f}."
        )
    if shown["ranking"] is not None:
        higher = f"a higher score than a wrong one in **{percent(shown['ranking'])} %**"
        listed = sum(row["events"] for row in shown["reliability"])
        right = round(listed * shown["precision"])
        those = f"of the pairs of {right} right and {listed - right} wrong ones"
        curve = f"{those} (the area under the ROC curve; 50 %: by luck)"
        lines += ["", f"A right one has {higher} {curve}."]
    # 3. the events by their scores
    table = []
    for row in reversed(shown["reliability"]):
        scores = f"{row['lowest']:.3g} – {row['highest']:.3g}", f"{row['mean_score']:.3g}"
        table.append([scores[0], row["events"], scores[1], f"{percent(row['right'])} %"])
    titles = ["score", "events", "mean score", "right"]
    return "\n".join([*lines, "", *markdown_table("lrrr", titles, table)]) + "\n"
