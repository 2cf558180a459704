"""Annotations as tables: plain CSV or TSV, both CSV forms of THUMOS14, and its text files.

A plain table has the columns video, start, end, label and, if wanted, subset; a header line names
them in any order, without one they stand in this order. The separator is a tab, a comma or a
semicolon. A row that names only a video (and a subset) says that the video holds no instance.

THUMOS14: its validation set, which everyone trains on, becomes our training subset, and its test
set our validation subset. "Ambiguous" marks actions that annotators were not sure of; they are
part of the ground truth in the published proposal scores, so they are kept by default.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from actionspan.dataset.formats.records import (
    RawInstance,
    Reading,
    Record,
    canonical_subset,
    id_problem,
    positive,
    quoted,
    subset_problem,
    to_number,
)
from actionspan.errors import InputError, printable

THUMOS14_CLASSES = (
    "BaseballPitch BasketballDunk Billiards CleanAndJerk CliffDiving CricketBowling CricketShot "
    "Diving FrisbeeCatch GolfSwing HammerThrow HighJump JavelinThrow LongJump PoleVault Shotput "
    "SoccerPenalty TennisSwing ThrowDiscus VolleyballSpiking"
).split()
AMBIGUOUS = "Ambiguous"

COLUMNS = {
    "video": ("video", "video_id", "video-id", "video-name", "video_name", "id", "name", "file"),
    "start": ("start", "start_seconds", "t-init", "t-start", "t_start"),
    "end": ("end", "end_seconds", "t-end", "t_end"),
    "label": ("label", "class", "action", "type", "label-idx"),
    "subset": ("subset", "split"),
    "seconds": ("duration", "duration_seconds", "duration_second", "seconds", "video-duration"),
    "frames": ("frames", "numframe", "video-frames", "duration_frame"),
    "fps": ("rfps", "fps", "frame-rate"),
}


@dataclass(kw_only=True)
class _Line:
    """One line of a table: its number and the values by our names of the columns."""

    row: str
    values: dict[str, str]


def read_table_records(file: str, text: str, form: str, keep_ambiguous: bool) -> Reading:
    """Read a plain table or a THUMOS14 table.

    Args:
        file: The file's name, for messages.
        text: Its content.
        form: `table`, `thumos14` or `auto`.
        keep_ambiguous: Whether THUMOS14's class "Ambiguous" counts as instances.

    Raises:
        InputError: The header line names other columns.
    """
    reading = Reading()
    header = text.split("\n", 1)[0].lower()
    thumos = form == "thumos14" or (
        form == "auto" and ("startframe" in header or "label-idx" in header)
    )
    records: dict[str, Record] = {}
    for line in _lines(file, text, ("video", "start", "end", "label"), reading):
        if thumos:
            line.values["subset"] = _thumos_subset(line.values["video"])
            line.values["label"] = _thumos_label(line.values["label"])
            if line.values["label"] == AMBIGUOUS and not keep_ambiguous:
                continue
        _add(file, line, records, reading)
    reading.records = list(records.values())
    return reading


def read_thumos_folder(files: Mapping[Path, str], keep_ambiguous: bool) -> Reading:
    """Read THUMOS14's own text files, `<Class>_val.txt`, with lines `video start end`.

    Args:
        files: The content of each file.
        keep_ambiguous: Whether the class "Ambiguous" counts as instances.
    """
    reading = Reading()
    records: dict[str, Record] = {}
    for path, text in files.items():
        label = path.stem.rsplit("_", 1)[0]
        if label == AMBIGUOUS and not keep_ambiguous:
            continue
        for number, content in enumerate(text.split("\n"), start=1):
            words = content.split()
            if len(words) not in (0, 3):
                reading.reject(str(path), str(number), "'video start end' is wanted")
            elif words:
                subset = _thumos_subset(words[0])
                values = dict(zip(("video", "start", "end"), words, strict=True))
                values |= {"label": label, "subset": subset}
                _add(str(path), _Line(row=str(number), values=values), records, reading)
    reading.records = list(records.values())
    return reading


def read_video_info(file: str, text: str) -> Reading:
    """Read what is known of videos without their files: `video_info_new.csv` or a like table.

    The columns are video and any of subset, seconds (duration), numFrame (frames) and fps. A video
    may be there more than once if its rows say the same.

    Raises:
        InputError: The header line names no column of videos.
    """
    reading = Reading()
    records: dict[str, Record] = {}
    said: dict[str, dict[str, str]] = {}
    no_instance = {"start": "", "end": "", "label": ""}
    for line in _lines(file, text, ("video",), reading):
        video_id = line.values["video"]
        values = {
            key: line.values.get(key, "") for key in ("video", "subset", "seconds", "frames", "fps")
        }
        if video_id not in records:
            said[video_id] = values
            _add(file, _Line(row=line.row, values=values | no_instance), records, reading)
        elif said[video_id] != values:
            reason = f"other values than row {records[video_id].row}, which counts, has for"
            reading.reject(file, line.row, f"{reason} {quoted(video_id, 100)}")
    reading.records = list(records.values())
    return reading


def _lines(file: str, text: str, needed: tuple[str, ...], reading: Reading) -> Iterator[_Line]:
    """Yield the lines of a table; lines that cannot be split right are rejected."""
    lines = text.splitlines() if "\n" not in text else text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    separator = next((mark for mark in "\t;" if mark in first), ",")
    columns: list[str | None] = []
    for number, content in enumerate(lines, start=1):
        if not content.strip():
            continue
        try:
            cells = next(csv.reader([content.rstrip("\r")], delimiter=separator, strict=True))
        except csv.Error as error:
            reading.reject(file, str(number), f"not a row of a table: {error}")
            continue
        cells = [cell.strip() for cell in cells]
        if not columns:
            columns, is_header = _columns(file, number, cells, needed)
            if is_header:
                continue
        while len(cells) > len(columns) and cells[-1] == "":
            cells.pop()
        if len(cells) > len(columns) or (len(cells) < len(columns) and columns[-1] != "subset"):
            reason = f"{len(cells)} values in a table of {len(columns)} columns"
            reading.reject(file, str(number), reason)
            continue
        values = dict.fromkeys(needed, "")
        values |= {name: cell for name, cell in zip(columns, cells, strict=False) if name}
        yield _Line(row=str(number), values=values)


def _columns(
    file: str, number: int, cells: list[str], needed: tuple[str, ...]
) -> tuple[list[str | None], bool]:
    """Return our name of each column, and whether the line was a header."""
    plain = ["video", "start", "end", "label", "subset"]
    if needed == tuple(plain[:4]) and len(cells) >= 4 and to_number(cells[1]) is not None:
        return list(plain), False  # a row of data where the header would be
    lower = [cell.lower() for cell in cells]
    columns: list[str | None] = [None] * len(cells)
    for ours, names in COLUMNS.items():
        place = next((lower.index(name) for name in names if name in lower), None)
        if place is not None:
            columns[place] = ours
    missing = [name for name in needed if name not in columns]
    if missing:
        found = ", ".join(quoted(cell, 20) for cell in cells[:8])
        raise InputError(
            f"{file}: row {number}: no column {missing[0]}: the first line must name"
            f" {', '.join(needed)}, not {found}"
        )
    return columns, True


def _add(file: str, line: _Line, records: dict[str, Record], reading: Reading) -> None:
    """Add one line to the record of its video."""
    video_id = line.values["video"]
    subset = canonical_subset(line.values.get("subset"))
    problem = id_problem(video_id)
    if not problem and subset is None:
        problem = subset_problem(line.values["subset"])
    record = records.get(video_id)
    if not problem and record and subset and record.subset not in ("", subset):
        problem = f"subset {subset}, but earlier rows put '{printable(video_id)}' in "
        problem += record.subset
    if problem:
        reading.reject(file, line.row, problem)
        return
    if record is None:
        record = records[video_id] = Record(file=file, row=line.row, video_id=video_id)
    record.subset = record.subset or subset or ""
    record.seconds = record.seconds or positive(line.values.get("seconds"))
    record.frames = record.frames or int(positive(line.values.get("frames")))
    record.fps = record.fps or positive(line.values.get("fps"))
    start, end, label = (line.values[key] for key in ("start", "end", "label"))
    if start or end or label:
        record.instances.append(RawInstance(row=line.row, start=start, end=end, label=label))


def _thumos_subset(video_id: str) -> str:
    if video_id.startswith("video_validation_"):
        return "training"
    return "validation" if video_id.startswith("video_test_") else ""


def _thumos_label(label: str) -> str:
    """Return a class's name; ground-truth tables give its number, -1 for Ambiguous."""
    if label == "-1":
        return AMBIGUOUS
    if label.isdecimal() and int(label) < len(THUMOS14_CLASSES):
        return THUMOS14_CLASSES[int(label)]
    return label
