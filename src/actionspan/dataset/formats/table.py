"""Plain CSV or TSV with the columns video, start, end, label and optionally subset.

With columns for duration in seconds, frames and frames per second it holds all that a record does.
An id or a label cannot start or end with a space.
"""

import csv
import io
from collections.abc import Sequence

from actionspan.dataset.formats.records import Reading, Record
from actionspan.dataset.formats.rows import add_lines, read_lines
from actionspan.files.text import safe_cell

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
    names = {"subset": "subset", "seconds": "duration", "frames": "frames", "fps": "fps"}
    known = [name for name in names if any(getattr(record, name) for record in records)]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*NEEDED, *(names[name] for name in known)])
    for record in records:
        facts = [getattr(record, name) or "" for name in known]
        video_id = safe_cell(record.video_id)
        for start, end, label in record.parsed():
            table.writerow([video_id, start, end, safe_cell(label), *facts])
        if not record.instances:
            table.writerow([video_id, "", "", "", *facts])
    return text.getvalue()
