"""Our own proposals.csv and events.csv: each row an instance, whatever its score. Read only.

The label is the row's, or `action` where the table has none.
"""

from collections.abc import Iterator

from actionspan.dataset.formats import rows
from actionspan.dataset.formats.records import FACTS, UNLABELLED, Reading
from actionspan.dataset.formats.rows import Line

_COLUMNS = {
    **{name: rows.COLUMNS[name] for name in FACTS},
    **{"video": ("video_id",), "label": ("label",)},
    **{"start": ("start_seconds",), "end": ("end_seconds",)},
}
_HEADER = {"video_id", "rank", "start_seconds", "end_seconds", "score"}


def sniff(text: str) -> bool:
    """Return whether the first line is the header of such a table."""
    return set(rows.header_cells(rows.first_line(text))) >= _HEADER


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the table."""
    reading = Reading(strict=strict)
    lines = rows.read_lines(file, text, ("video", "start", "end"), reading, _COLUMNS)
    rows.add_lines(file, labelled(lines), reading)
    return reading


def labelled(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield lines, those of instances with a label."""
    for line in lines:
        if line.values["start"] or line.values["end"]:
            line.values["label"] = line.values.get("label") or UNLABELLED
        yield line
