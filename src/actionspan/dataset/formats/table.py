"""Plain CSV or TSV with the columns video, start, end, label and optionally subset.

With columns for duration in seconds, frames and frames per second it holds all that a record does.
An id or a label cannot start or end with a space.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from actionspan.dataset.formats.records import FACTS, Reading, Record
from actionspan.dataset.formats.rows import add_lines, csv_text, read_lines

NEEDED = ("video", "start", "end", "label")


def sniff(text: str) -> bool:
    """Return whether the text is not JSON; the tables of other formats are tried before."""
    return text.lstrip()[:1] not in ("{", "[")


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read a table with a row for each instance."""
    reading = Reading(strict=strict)
    add_lines(file, read_lines(file, text, NEEDED, reading), reading)
    return reading


def write(records: Sequence[Record]) -> str:
    """Return the records as CSV, with a column for each fact known about any video."""
    known = [name for name in FACTS if any(getattr(record, name) for record in records)]

    def rows() -> Iterator[list[Any]]:
        for record in records:
            facts = [getattr(record, name) or "" for name in known]
            for segment in record.parsed():
                yield [record.video_id, *segment, *facts]
            if not record.instances:
                yield [record.video_id, "", "", "", *facts]

    header = ("duration" if name == "seconds" else name for name in known)
    return csv_text((*NEEDED, *header), rows())
