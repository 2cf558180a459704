"""The decisions of a person in the page: corrections.csv. Read only.

Its columns are `video`, `start`, `end`, `label` and `status`, and `subject` where a row has one.
Proposals that were `accepted` or `moved` or `added`, are instances; `rejected` ones are left out. A
row with the status `none` and no more means that somebody looked at the video and nothing happens
in it.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from actionspan.annotations.formats import rows
from actionspan.annotations.formats.proposals import labelled
from actionspan.annotations.formats.records import Reading, quoted
from actionspan.annotations.formats.rows import Line
from actionspan.errors import InputError, counted
from actionspan.storage.writing import read_json

HEADER = ("video", "start", "end", "label", "status")
_SUBJECT = "subject"  # a sixth column, of who does it
KEPT = ("accepted", "moved", "added")
LEFT_OUT = ("rejected", "none")


def sniff(text: str) -> bool:
    """Return whether the first line names these columns alone, and a status is one of ours."""
    header = rows.header_cells(rows.first_line(text))
    if sorted(name for name in header if name != _SUBJECT) != sorted(HEADER):
        return False
    place = header.index("status")
    lines = filter(str.strip, rows.split_lines(text[:100_000]))
    table = (rows.header_cells(line) for line in lines)
    found = {row[place] for row in table if len(row) == len(header)} - {"status"}
    return not found or bool(found & {*KEPT, *LEFT_OUT})


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the corrections."""
    reading = Reading(strict=strict)
    names = {name: (name,) for name in (*HEADER, _SUBJECT)}
    lines = rows.read_lines(file, text, HEADER, reading, names)
    rows.add_lines(file, labelled(_decided(file, lines, reading)), reading)
    return reading


def table_text(kept: Iterable[Sequence[str]]) -> str:
    """Return the text of a table of rows, each with a cell for a subject or without."""
    lines = list(kept)
    if not any(any(row[len(HEADER) :]) for row in lines):
        return rows.csv_text(HEADER, (row[: len(HEADER)] for row in lines))
    full = ((*row, "")[: len(HEADER) + 1] for row in lines)
    return rows.csv_text((*HEADER, _SUBJECT), full)


def _decided(file: str, lines: Iterator[Line], reading: Reading) -> Iterator[Line]:
    """Yield the lines of instances, and one without times for each video that was looked at."""
    for line in lines:
        status, problem = line.values["status"].lower(), ""
        if status in LEFT_OUT:
            line.values |= {"start": "", "end": "", "label": ""}
        elif status not in KEPT:
            problem = f"status {quoted(status)}; known are {', '.join((*KEPT, *LEFT_OUT))}"
        elif not (line.values["start"] and line.values["end"]):
            problem = f"{status}, but without a start and an end"
        if problem:
            reading.reject(file, line.row, problem, line.values["video"])
        else:
            yield line


def add_unfinished(reading: Reading, table: Path, take: bool | None) -> None:
    """Add corrections of unfinished videos, which `review` keeps with its table, or name them."""
    known, left = {record.video_id for record in reading.records}, []
    for path in sorted(table.with_suffix("").glob("*.json")):
        try:
            content = read_json(path)
        except InputError as error:
            print(error, file=sys.stderr)
            continue
        match content:
            case {"state": {"done": True}}:
                continue
            case {"state": {}, "rows": [[str(name), *_], *_] as kept} if name not in known:
                left.append(name)
                if take:
                    part = read(str(path), table_text(kept), reading.strict)
                    reading.records += part.records
                    reading.rejections += part.rejections
    if left and not take:
        cure = "tick Done" + ", or give --not-done" * (take is not None)
        line = f"left out {counted(len(left), 'video')} with corrections saved but not Done"
        print(f"{table}: {line} ({cure}): {', '.join(left)}", file=sys.stderr)
