"""Chapters as YouTube reads them in a description: a line `0:00 Title` for each.

A chapter ends at the second time of its line, where there is one, or else where the next begins,
and the last one with the video. Other lines are text. The video is the file's stem. Read only.
"""

import re

from actionspan.annotations.formats.records import Reading, record_of_file
from actionspan.annotations.formats.rows import first_line, is_header, split_lines
from actionspan.annotations.formats.times import VideoEnd, to_seconds

_TIME = r"((?:\d+:)?\d+:\d\d(?:\.\d+)?)"
_LINE = re.compile(
    rf"[\[(]?{_TIME}(?:\s*[-–—]\s*{_TIME})?[\])]?(?:\s*[-–—:|]\s*|\s+)(\S.*)", re.ASCII
)


def sniff(text: str) -> bool:
    """Return whether the first line with a time begins at 0:00, as YouTube demands."""
    if is_header(first_line(text)):
        return False
    for line in split_lines(text[:100_000]):
        if found := _LINE.fullmatch(line.strip()):
            return "\t" not in line and to_seconds(found[1]) == 0
    return False


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the chapters of a video."""
    reading = Reading(strict=strict)
    record = record_of_file(file, reading)
    if record is None:
        return reading
    begun: list[tuple[str, str, str | None, str]] = []
    for number, line in enumerate(split_lines(text), start=1):
        if found := _LINE.fullmatch(line.strip()):
            begun.append((str(number), found[1], found[2], found[3]))
    for place, (row, start, stated, label) in enumerate(begun):
        following = begun[place + 1][1] if place + 1 < len(begun) else VideoEnd()
        record.add(row, start, following if stated is None else stated, label)
    return reading
