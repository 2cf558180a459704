"""Our own proposals.csv and events.csv: each row an instance, whatever its score. Read only.

The label is the row's, or `action` where the table has none.
"""

from collections.abc import Iterator

from actionspan.dataset.formats.records import UNLABELLED, Reading
from actionspan.dataset.formats.rows import (
    COLUMNS,
    Line,
    add_lines,
    first_line,
    header_cells,
    read_lines,
)

_COLUMNS = {
    **{name: COLUMNS[name] for name in ("subset", "seconds", "frames", "fps")},
    "video": ("video_id",),
    "start": ("start_seconds",),
    "end": ("end_seconds",),
    "label": ("label",),
}
_HEADER = {"video_id", "rank", "start_seconds", "end_seconds", "score"}


def sniff(text: str) -> bool:
    """Return whether the first line is the header of such a table."""
    return set(header_cells(first_line(text))) >= _HEADER


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the table."""
    reading = Reading(strict=strict)
    lines = read_lines(file, text, ("video", "start", "end"), reading, _COLUMNS)
    add_lines(file, labelled(lines), reading)
    return reading


def labelled(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield lines, those of instances with a label."""
    for line in lines:
        if line.values["start"] or line.values["end"]:
            line.values["label"] = line.values.get("label") or UNLABELLED
        yield line
