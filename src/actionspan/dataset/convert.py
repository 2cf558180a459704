"""Convert annotations from any format to another."""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from actionspan.dataset.formats import activitynet, elan
from actionspan.dataset.formats.records import (
    FACTS,
    Record,
    drop_unsound,
    id_problem,
    report_left_out,
)
from actionspan.dataset.formats.registry import FORMAT_NAMES as NAMES
from actionspan.dataset.formats.registry import FORMATS, WRITABLE, read_annotation_file
from actionspan.errors import InputError, counted
from actionspan.files.storage import atomic_path

_BY_SUFFIX = {
    **{".boris": "boris_project", ".csv": "table", ".eaf": "elan", ".json": "activitynet"}
}
COARSEST = 0.5 / 12  # seconds: half a frame; a time that is further off is another time
Segment = tuple[float, float, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("source", type=Path, metavar="IN", help="annotations, or a folder of their files")
    add("target", type=Path, metavar="OUT", help="the file to write; for elan, a folder")
    source = "format of IN (default: auto, by its content)"
    add("--from", dest="source_form", choices=NAMES, default="auto", help=source)
    add_target_form(parser, "target_form", "format of OUT")
    videos = "the videos, for durations and frame rates that IN lacks"
    add("--videos", type=Path, metavar="FOLDER", help=videos)


def add_target_form(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add the flag of the format to write."""
    suffixes = ".json is activitynet, .csv table, .eaf, .boris"
    help = f"{what} (default: by suffix, {suffixes})"
    parser.add_argument("--to", dest=name, choices=tuple(WRITABLE), help=help)


def run(arguments: argparse.Namespace) -> None:
    """Write OUT; say on standard error which rows were left out and what its format cannot hold."""
    target = arguments.target
    form = form_of(target, arguments.target_form)
    # what of IN is sound
    reading = read_annotation_file(arguments.source, arguments.source_form)
    if arguments.videos is not None:
        from actionspan.dataset.completing import complete

        for line in complete(reading, arguments.videos):
            print(line, file=sys.stderr)
    drop_unsound(reading)
    report_left_out(reading)
    records = reading.records
    if reading.rejections and not records:
        raise InputError(f"{arguments.source}: no video is left")
    # OUT, and what it cannot hold
    lost = what_is_lost(records, write_records(target, form, records))
    report_lost(target, form, lost)
    print(f"{target}: {counted(len(records), 'video')}, {form}")


def form_of(path: Path, named: str | None) -> str:
    """Return the format in which to write a file.

    Raises:
        InputError: None is named, and the suffix is that of no format.
    """
    form = named or _BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        raise InputError(f"{path}: the suffix names no format; give --to ({', '.join(WRITABLE)})")
    return form


def write_records(path: Path, form: str, records: Sequence[Record], name: str = "") -> list[Record]:
    """Write sound records; return what the written files say.

    Args:
        path: The file; in a format that has one for each video, its folder, unless it is named as
            the file of the only video.
        form: A name of `WRITABLE`.
        records: What to write.
        name: Of the data set, which ActivityNet's format keeps.
    """
    if form != "elan" or (len(records) == 1 and path.suffix.lower() == elan.SUFFIX):
        return _write(path, form, records, name)
    if path.suffix.lower() == elan.SUFFIX or path.is_file():
        each = f"ELAN has a file for each video, and there are {len(records)}"
        raise InputError(f"{path}: {each}; name a folder for them")
    written = []
    path.mkdir(parents=True, exist_ok=True)
    for record in records:
        if problem := id_problem(record.video_id):
            raise InputError(f"{path}: no file is written: {problem}")
        written += _write(path / f"{record.video_id}{elan.SUFFIX}", form, [record])
    return written


def _write(path: Path, form: str, records: Sequence[Record], name: str = "") -> list[Record]:
    if form == "activitynet":
        text = activitynet.write(records, name)
    else:
        text = WRITABLE[form].write(records)
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="")
    return FORMATS[form].read(str(path), text).records


def what_is_lost(records: Sequence[Record], written: Sequence[Record]) -> Counter[str]:
    """Count, for each fact, the videos for which the written file does not repeat it.

    Segments whose times are a little off, as a format has them in milliseconds or frames, are lost
    as "exact times".
    """
    back = {record.video_id: facts(record) for record in written}
    lost = Counter[str]()
    for record in records:
        found = back.get(record.video_id, {})
        for name, value in facts(record).items():
            if found.get(name) != value:
                off = name == "segments" and _are_near(record.parsed(), found.get(name))
                lost["exact times" if off else name] += 1
    return lost


def report_lost(path: Path, form: str, lost: Counter[str]) -> None:
    """Say on standard error what a format could not hold of how many videos."""
    if lost:
        parts = (f"{name} ({count:,})" for name, count in lost.items())
        print(f"{path}: videos of which {form} cannot hold: {', '.join(parts)}", file=sys.stderr)


def facts(record: Record) -> dict[str, object]:
    """Return what a record says about its video, its segments in order of time."""
    known = {name: value for name in FACTS if (value := getattr(record, name))}
    return known | {"segments": sorted(record.parsed())}


def _are_near(segments: Sequence[Segment], others: object) -> bool:
    """Return whether segments have partners with the same label and nearly the same times."""
    if not isinstance(others, list) or len(segments) != len(others):
        return False
    by_label = [
        sorted((label, start, end) for start, end, label in each) for each in (segments, others)
    ]
    return all(
        one[0] == other[0]
        and math.isclose(one[1], other[1], abs_tol=COARSEST)
        and math.isclose(one[2], other[2], abs_tol=COARSEST)
        for one, other in zip(*by_label, strict=True)
    )
