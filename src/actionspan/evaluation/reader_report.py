"""What a reader gets from one method: a record and a page of Markdown."""

from collections.abc import Mapping
from typing import Any

from actionspan.errors import counted
from actionspan.evaluation.reader_figures import NUMBERS, ReaderFigures
from actionspan.files.markdown import markdown_table

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
