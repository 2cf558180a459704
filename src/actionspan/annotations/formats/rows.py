"""Rows of tables: the separator, the names of the columns, and the records of the rows' videos.

A header line names the columns in any order; without a header they are video, start, end, label
and optionally subset. The separator is a tab, a comma or a semicolon; between the latter two a
number may have a decimal comma. A row that names only a video (and a subset) means that the video
holds no instance.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from actionspan.annotations.formats.records import (
    DETAILS,
    FACTS,
    Reading,
    Record,
    id_problem,
    positive,
    quoted,
    subset_name,
    subset_problem,
    video_id_of,
)
from actionspan.annotations.formats.times import to_number, to_seconds, with_decimal_point
from actionspan.errors import InputError, counted, printable
from actionspan.storage.text import read_cell, safe_cell

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "video": (
        *("video", "video_id", "video-id", "video-name", "video_name", "id", "name", "file"),
        *("filename", "file name", "media file name", "media file path", "media file", "media"),
    ),
    "start": (
        *("start", "start_seconds", "t-init", "t-start", "t_start", "start (s)", "start_time"),
        *("start time", "begin", "begin_seconds", "begin time", "onset"),
    ),
    "end": (
        *("end", "end_seconds", "t-end", "t_end", "end (s)", "end_time", "end time"),
        *("stop", "stop_seconds", "stop (s)", "stop_time", "stop time"),
    ),
    "label": (
        *("label", "class", "action", "type", "label-idx", "behavior", "behaviour", "category"),
        *("annotation", "event", "tier"),
    ),
    "subset": ("subset", "split"),
    "seconds": ("duration", "duration_seconds", "duration_second", "seconds", "video-duration"),
    "frames": ("frames", "numframe", "video-frames", "duration_frame"),
    "fps": ("rfps", "fps", "frame-rate"),
    "subject": ("subject",),
    "modifiers": ("modifiers",),
}
# columns that may have a decimal comma
NUMBERS = {"start", "end", "seconds", "frames", "fps", "score"}


@dataclass(kw_only=True)
class Line:
    """A line of a table: its number, and its values by our names of the columns."""

    row: str
    values: dict[str, str]


def iterate_video_info(file: str, text: str, reading: Reading) -> Iterator[Record]:
    """Yield facts about videos from a table such as `video_info_new.csv`.

    The columns are video and any of subset, seconds (duration), numFrame (frames) and fps. A video
    may have several rows if they agree. `reading` takes the rejections.

    Raises:
        InputError: The header line names no column of videos.
    """
    first: dict[str, tuple[str, int]] = {}  # the row of a video, and a hash of its values
    for line in read_lines(file, text, ("video",), reading):
        video_id = line.values["video"]
        values = {key: line.values.get(key, "") for key in ("video", *FACTS)}
        known = hash(tuple(values.values()))
        if video_id not in first:
            record: dict[str, Record] = {}
            _add(file, Line(row=line.row, values=values), record, reading)
            if record:
                first[video_id] = line.row, known
                yield record[video_id]
        elif first[video_id][1] != known:
            reason = f"values for {quoted(video_id, 100)} differ from row {first[video_id][0]}"
            reading.reject(file, line.row, f"{reason}, which counts")


def add_lines(file: str, lines: Iterable[Line], reading: Reading) -> None:
    """Add each line to the record of its video."""
    records = {record.video_id: record for record in reading.records}
    for line in lines:
        _add(file, line, records, reading)
    reading.records = list(records.values())


def read_lines(
    file: str,
    text: str,
    needed: tuple[str, ...],
    reading: Reading,
    names: Mapping[str, tuple[str, ...]] = COLUMNS,
    before: int = 0,
) -> Iterator[Line]:
    """Yield the lines of a table; reject lines that cannot be split into its columns.

    Args:
        file: Its name, for messages.
        text: Its content.
        needed: The columns that it must have, by our names.
        reading: Takes the rejections.
        names: The names that each column may have, in lower case, by ours.
        before: Lines before the table, which are passed over.

    Raises:
        InputError: A column is missing.
    """
    separator, paths = "", False
    columns: list[str | None] = []
    for number, content in enumerate(split_lines(text), start=1):
        if number <= before or not content.strip():
            continue
        separator = separator or _separator_of(content)
        try:
            cells = next(csv.reader([content.rstrip("\r")], delimiter=separator, strict=True))
        except csv.Error as error:
            reading.reject(file, str(number), f"not a row of a table: {error}")
            continue
        cells = [read_cell(cell.strip()) for cell in cells]
        if not columns:
            columns, named = _columns(file, number, cells, needed, names)
            if named:
                paths = "video" in columns and cells[columns.index("video")].lower()[:5] == "media"
                continue
        while len(cells) > len(columns) and cells[-1] == "":
            cells.pop()
        if len(cells) > len(columns) or (len(cells) < len(columns) and columns[-1] != "subset"):
            reason = f"{counted(len(cells), 'value')} in a table of "
            reason += counted(len(columns), "column")
            video_id = dict(zip(columns, cells, strict=False)).get("video", "")
            reading.reject(file, str(number), reason, video_id)
            continue
        values = dict.fromkeys(needed, "")
        values |= {name: cell for name, cell in zip(columns, cells, strict=False) if name}
        if paths:
            values["video"] = video_id_of(values["video"])
        if separator != ",":
            values |= {name: with_decimal_point(values[name]) for name in NUMBERS & values.keys()}
        yield Line(row=str(number), values=values)


def _separator_of(line: str) -> str:
    """Return the separator of a line's cells: a tab, a semicolon or a comma."""
    return next((mark for mark in "\t;" if mark in line), ",")


def first_line(text: str) -> str:
    """Return the first line that is not blank, which is a table's header if it has one."""
    return next((line for line in split_lines(text) if line.strip()), "").rstrip("\r")


def is_header(line: str) -> bool:
    """Return whether a line names columns of videos and of times, as a plain table does."""
    cells = set(header_cells(line))
    return bool(cells.intersection(COLUMNS["video"]) and cells.intersection(COLUMNS["start"]))


def header_cells(line: str) -> list[str]:
    """Return the cells of a line in lower case, to see which format's header it is."""
    return [cell.strip().strip('"').lower() for cell in line.split(_separator_of(line))]


def split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text; a list of all would take as much memory again."""
    if "\n" not in text:
        yield from text.splitlines()
        return
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield text[begin:end]
        begin = end + 1
    yield text[begin:]


def _columns(
    file: str,
    number: int,
    cells: list[str],
    needed: tuple[str, ...],
    known: Mapping[str, tuple[str, ...]],
) -> tuple[list[str | None], bool]:
    """Return our name of each column, and whether the line was a header."""
    plain: list[str | None] = ["video", "start", "end", "label", "subset"]
    is_plain = needed == tuple(plain[:4]) and len(cells) >= 4
    if is_plain and to_seconds(with_decimal_point(cells[1])) is not None:
        return plain, False  # a row of data where the header would be
    lower = [cell.lower() for cell in cells]
    columns: list[str | None] = [None] * len(cells)
    for ours, names in known.items():
        place = next((lower.index(name) for name in names if name in lower), None)
        if place is not None:
            columns[place] = ours
    missing = [name for name in needed if name not in columns]
    if missing:
        given = ", ".join(quoted(cell, 20) for cell in cells[:8])
        wanted = f"the first line must name {', '.join(needed)}, not {given}"
        raise InputError(f"{file}: row {number}: no column {missing[0]}: {wanted}")
    return columns, True


def _add(file: str, line: Line, records: dict[str, Record], reading: Reading) -> None:
    """Add a line to the record of its video."""
    video_id = line.values["video"]
    subset = subset_name(line.values.get("subset"), reading.strict)
    problem = id_problem(video_id)
    if not problem and subset is None:
        problem = subset_problem(line.values["subset"])
    record = records.get(video_id)
    if not problem and record and subset and record.subset not in ("", subset):
        video = printable(video_id)
        problem = f"subset {subset}, but earlier rows put '{video}' in {record.subset}"
    if problem:
        reading.reject(file, line.row, problem, video_id)
        return
    if record is None:
        record = records[video_id] = Record(file=file, row=line.row, video_id=video_id)
    record.subset = record.subset or subset or ""
    record.seconds = record.seconds or positive(line.values.get("seconds"))
    record.frames = record.frames or int(positive(line.values.get("frames")))
    record.fps = record.fps or positive(line.values.get("fps"))
    segment = [line.values.get(key, "") for key in ("start", "end", "label")]
    if any(segment):
        details = {name: line.values.get(name, "") for name in DETAILS}
        score = to_number(line.values.get("score"))
        # a reader adds it; it is not a column
        point, bare = "point" in line.values, "unlabelled" in line.values
        record.add(line.row, *segment, **details, score=score, point=point, unlabelled=bare)


def csv_text(header: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the CSV text of a table; no cell is a formula."""
    return csv_lines(chain([header], rows))


def csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Return the CSV text of rows without a header; no cell is a formula."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(safe_cell, row) for row in rows)
    return text.getvalue()
