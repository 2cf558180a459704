"""Plain CSV or TSV with the columns video, start, end, label and, if wanted, subset.

It may have columns for duration in seconds, frames and frames a second too, and so holds all that
a record does. An id or a label cannot begin or end with a space.
"""

import csv
import io
from collections.abc import Sequence

from actionspan.dataset.formats.records import Reading, Record
from actionspan.dataset.formats.rows import add_lines, read_lines

NEEDED = ("video", "start", "end", "label")


def sniff(text: str) -> bool:
    """Return whether the text is not JSON: a table of the other forms is tried before."""
    return text.lstrip()[:1] not in ("{", "[")


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read a table, a row an instance."""
    reading = Reading(strict=strict)
    add_lines(file, read_lines(file, text, NEEDED, reading), reading)
    return reading


def write(records: Sequence[Record]) -> str:
    """Return the records as CSV, with a column for whatever is known of any video."""
    names = {"subset": "subset", "seconds": "duration", "frames": "frames", "fps": "fps"}
    known = [name for name in names if any(getattr(record, name) for record in records)]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*NEEDED, *(names[name] for name in known)])
    for record in records:
        facts = [getattr(record, name) or "" for name in known]
        for times_and_label in [raw.parsed() for raw in record.instances]:
            table.writerow([record.video_id, *times_and_label, *facts])
        if not record.instances:
            table.writerow([record.video_id, "", "", "", *facts])
    return text.getvalue()
