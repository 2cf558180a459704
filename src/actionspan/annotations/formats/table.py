"""Plain CSV or TSV with the columns video, start, end, label and optionally subset.

With columns for duration in seconds, frames and frames per second, subject and modifiers it holds
all that a record does. An id or a label cannot start or end with a space. A table with a column of
a single time instead of start and end has points, which end where they start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from actionspan.annotations.formats.records import DETAILS, FACTS, Reading, Record
from actionspan.annotations.formats.rows import (
    COLUMNS,
    add_lines,
    csv_text,
    first_line,
    header_cells,
    read_lines,
)

NEEDED = ("video", "start", "end", "label")
_TIME = ("time", "time (s)", "time_seconds", "timestamp")


def sniff(text: str) -> bool:
    """Return whether the text is not JSON; the tables of other formats are tried before."""
    return text.lstrip()[:1] not in ("{", "[")


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read a table with a row for each instance."""
    reading = Reading(strict=strict)
    header = set(header_cells(first_line(text)))
    # a duration in the row of a time may be the event's
    others = COLUMNS["start"] + COLUMNS["end"] + COLUMNS["seconds"]
    if not header.isdisjoint(_TIME) and header.isdisjoint(others):
        names = {**COLUMNS, "start": _TIME}
        lines = read_lines(file, text, ("video", "start", "label"), reading, names)
        lines = (
            replace(line, values=line.values | {"end": line.values["start"], "point": "yes"})
            for line in lines
        )
    else:
        lines = read_lines(file, text, NEEDED, reading)
    add_lines(file, lines, reading)
    return reading


def write(records: Sequence[Record]) -> str:
    """Return the records as CSV, with a column for each fact known about any video."""
    known = [name for name in FACTS if any(getattr(record, name) for record in records)]
    given = {name for record in records for raw in record.instances for name in raw.details}
    known += [name for name in DETAILS if name in given]

    def rows() -> Iterator[list[Any]]:
        for record in records:
            facts = {name: getattr(record, name) or "" for name in FACTS}
            for segment, raw in zip(record.parsed(), record.instances, strict=True):
                own = facts | raw.details
                yield [record.video_id, *segment, *(own.get(name, "") for name in known)]
            if not record.instances:
                yield [record.video_id, "", "", "", *(facts.get(name, "") for name in known)]

    header = ("duration" if name == "seconds" else name for name in known)
    return csv_text((*NEEDED, *header), rows())
