"""ELAN's export as tab-delimited text, with a column for each tier or a row with the tier's name.

A header names the columns of times, each perhaps in several notations; every other column is a
tier, and each of its values an instance. Without a header, as ELAN writes by default, the first
cell of a row is the tier and the last the value. The video is the media file or .eaf that the text
names, or else the text's own stem.
"""

import csv
import re
from collections.abc import Sequence
from pathlib import PurePath

from actionspan.annotations.formats.records import (
    SUBSET_NAMES,
    SUFFIXES,
    Reading,
    id_problem,
    video_id_of,
)
from actionspan.annotations.formats.rows import split_lines
from actionspan.annotations.names import VIDEO_SUFFIXES

_CLOCK = re.compile(r"\d+:\d\d:\d\d\.\d+", re.ASCII)
_HEADER = re.compile(r"(begin|end) time - (.*)", re.IGNORECASE)
_NOTATIONS = ("ss.msec", "hh:mm:ss.ms", "msec")  # the first that is there is read
_RANKS = ("document", "audio", "video")  # of two files the later here counts, or the first
_FILES = ("file", "file name", "file path")
_NOT_TIERS = {"", "tier", "participant", "annotator", *_FILES}


def sniff(text: str) -> bool:
    """Return whether the first row names begin times, or has two of them as hh:mm:ss.ms."""
    first = next((line for line in split_lines(text) if _is_row(line)), "")
    cells = [cell.strip().strip('"') for cell in first.split("\t")]
    named = {match[1].lower() for cell in cells if (match := _HEADER.fullmatch(cell))}
    clocks = sum(bool(_CLOCK.fullmatch(cell)) for cell in cells[1:-1])
    return named == {"begin", "end"} or (clocks >= 2 and not _is_plain(cells))


def _is_plain(cells: Sequence[str]) -> bool:
    """Return whether a row is `video start end label [subset]` of a plain table.

    ELAN writes the durations, the participant or the times in more than one notation, too.
    """
    if not all(map(_CLOCK.fullmatch, cells[1:3])):
        return False
    return len(cells) == 4 or (len(cells) == 5 and cells[4].lower() in SUBSET_NAMES)


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the export of one document, or of several with a column of their files."""
    reading = Reading(strict=strict)
    video_id, columns, best = PurePath(file).stem, list[str](), 0
    for number, line in enumerate(split_lines(text), start=1):
        if not _is_row(line):
            named = _named_file(line)
            rank = _RANKS.index(_kind(named))
            if named and (rank > best or not best):
                video_id, best = video_id_of(named).removesuffix(".eaf"), rank
            continue
        try:
            (cells,) = csv.reader([line.rstrip("\r")], delimiter="\t")
        except csv.Error as error:
            reading.reject(file, str(number), f"not a row of a table: {error}")
            continue
        cells = [cell.strip() for cell in cells]
        if not columns and any(_HEADER.fullmatch(cell) for cell in cells):
            columns = cells
            continue
        times, labels = _named(columns, cells) if columns else _unnamed(cells)
        own = dict(zip((name.lower() for name in columns), cells, strict=False))
        source = next((own[name] for name in _FILES if own.get(name)), "")
        found = PurePath(source.replace("\\", "/")).stem or video_id
        problem = id_problem(found) or ("" if len(times) == 2 else "no begin and end time")
        if problem:
            reading.reject(file, str(number), problem, found)
            continue
        record = reading.record_of(file, str(number), found)
        assert record is not None
        for label in labels:
            record.add(str(number), times[0], times[1], label)
    return reading


def _is_row(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip('"').startswith("#")


def _named_file(line: str) -> str:
    """Return the file that a line before the rows names, such as `"#file:///D:/a.eaf"`."""
    named = line.partition("file://")[2].split('"')[0].split("\t")[0]
    return named.partition(" Offset:")[0].strip().lstrip("/")


def _kind(name: str) -> str:
    suffix = PurePath(name).suffix.lower()
    if suffix in VIDEO_SUFFIXES:
        return "video"
    return "audio" if suffix in SUFFIXES else "document"


def _named(columns: list[str], cells: list[str]) -> tuple[list[str | float], list[str]]:
    """Return begin and end, and the values of the tiers, of a row under a header."""
    times: dict[tuple[str, str], str] = {}
    labels = []
    for name, cell in zip(columns, cells, strict=False):
        time = _HEADER.fullmatch(name)
        if time:
            times[time[1].lower(), time[2].lower()] = cell
        elif cell and not name.lower().startswith("duration - ") and name.lower() not in _NOT_TIERS:
            labels.append(cell)
    for notation in _NOTATIONS:
        found = [times[edge, notation] for edge in ("begin", "end") if (edge, notation) in times]
        if len(found) == 2 and all(found):
            return ([_seconds(value, notation) for value in found], labels)
    return [], labels


def _unnamed(cells: list[str]) -> tuple[list[str | float], list[str]]:
    clocks: list[str | float] = [cell for cell in cells[1:-1] if _CLOCK.fullmatch(cell)]
    return clocks[:2], [cells[-1] or cells[0]]


def _seconds(value: str, notation: str) -> str | float:
    if notation != "msec":
        return value
    return float(value) / 1000 if value.isdecimal() and len(value) < 16 else f"{value} ms"
