"""Audacity's labels: a line `start, end, label` between tabs, in seconds, for one recording.

The video is the file's stem. A line that begins with a backslash gives frequencies and is passed
over; a label at a point ends where it starts. Read only.
"""

import re

from actionspan.annotations.formats.records import Reading, record_of_file
from actionspan.annotations.formats.rows import first_line, split_lines
from actionspan.annotations.formats.times import with_decimal_point

_LINE = re.compile(r"-?\d+[.,]?\d*\t-?\d+[.,]?\d*(\t[^\t]*)?", re.ASCII)


def sniff(text: str) -> bool:
    """Return whether the first line is two numbers and a label."""
    return _LINE.fullmatch(first_line(text)) is not None


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the labels of a recording."""
    reading = Reading(strict=strict)
    record = record_of_file(file, reading)
    if record is None:
        return reading
    for number, line in enumerate(split_lines(text), start=1):
        if not line.strip() or line.startswith("\\"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        times = [with_decimal_point(cell) for cell in cells[:2]]
        if len(cells) not in (2, 3):
            what = "'start, end, label' between tabs is wanted"
            reading.reject(file, str(number), what, record.video_id)
        else:
            label = cells[2] if len(cells) == 3 else ""
            point = times[0] == times[1]
            record.add(str(number), times[0], times[1], label, point=point)
    return reading
