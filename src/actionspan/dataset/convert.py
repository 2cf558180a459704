"""Convert annotations from any format to another."""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from actionspan.annotations.formats import activitynet, boris_project, label_studio
from actionspan.annotations.formats.records import (
    FACTS,
    Reading,
    Record,
    drop_unsound,
    id_problem,
    report_left_out,
)
from actionspan.annotations.formats.registry import FORMAT_NAMES as NAMES
from actionspan.annotations.formats.registry import FORMATS, WRITABLE, read_annotation_file
from actionspan.annotations.keys import LabelKey, read_keys
from actionspan.dataset.matching import Names
from actionspan.dataset.settings import add_reading, how_read
from actionspan.errors import InputError, counted
from actionspan.storage.writing import atomic_path, write_text

_BY_SUFFIX = {".boris": "boris_project", ".csv": "table", ".eaf": "elan", ".json": "activitynet"}
_COARSEST = 1 / 12  # seconds: a frame; a time that is further off is another time
_WHO = "subjects and modifiers"
Segment = tuple[float, float, str]
_CALLED = {"seconds": "duration of the video", "frames": "number of frames", "fps": "frame rate"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("source", type=Path, metavar="IN", help="annotations, or a folder of their files")
    add("out", type=Path, metavar="OUT", help="the file to write; for some formats a folder")
    source = "format of IN (default: auto, by its content)"
    add("--from", dest="source_form", choices=NAMES, default="auto", help=source)
    add_target_form(parser, "target_form", "format of OUT")
    videos = "the videos, for durations and frame rates that IN lacks"
    add("--videos", type=Path, metavar="FOLDER", help=videos)
    by_file = "divide recordings of several files, in --videos, into their files, and what spans "
    by_file += "two files at the border"
    by_recording = "join what --by-file divides: annotations of the files, in the lists of --videos"
    units = parser.add_mutually_exclusive_group()
    units.add_argument("--by-file", action="store_true", help=by_file)
    units.add_argument("--by-recording", action="store_true", help=by_recording)
    subjects = "put the subject, as BORIS has it, into the label: feeding (lamb 3)"
    add("--subjects", action="store_true", help=subjects)
    predictions = (
        "proposals or events to put next to the annotations, as predictions (label_studio)"
    )
    add("--predictions", type=Path, metavar="FILE", help=predictions)
    keys = "keys.json of the page, or a .boris file, for the ethogram of OUT (boris_project)"
    add("--keys", type=Path, metavar="FILE", help=keys)
    add_reading(parser)


def add_target_form(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add the flag of the format to write."""
    suffixes = ".json is activitynet, .csv table, .eaf, .boris"
    help = f"{what} (default: by suffix, {suffixes})"
    parser.add_argument("--to", dest=name, choices=tuple(WRITABLE), help=help)


def run(arguments: argparse.Namespace) -> None:
    """Write OUT; report on standard error the rows left out and the content beyond its format."""
    target = arguments.out
    form = form_of(target, arguments.target_form)
    if arguments.keys is not None and form != "boris_project":
        raise InputError(f"--keys {arguments.keys}: only boris_project has keys of labels")
    keys = read_keys(arguments.keys) if arguments.keys is not None else []
    # 1. the sound part of IN; to Label Studio, proposals of a model are not annotations
    reading = _read(arguments.source, arguments.source_form, arguments)
    records, predicted = reading.records, list[Record]()
    if form == "label_studio" and reading.form == "proposals":
        records, predicted = predicted, records
    # 2. predictions, by the names of the annotations: else one video would be two tasks
    if arguments.predictions is not None:
        if form != "label_studio" or predicted:
            what = "predictions are written with annotations, in label_studio alone"
            raise InputError(f"--predictions {arguments.predictions}: {what}")
        predicted = _read(arguments.predictions, "auto", arguments).records
        names = Names({record.video_id: record for record in records})
        found: dict[str, str] = {}
        for record in predicted:
            named, record.video_id = record.video_id, names.find(record.video_id) or record.video_id
            if (other := found.setdefault(record.video_id, named)) != named:
                both = f"{other!r} and {named!r} are both {record.video_id!r}"
                raise InputError(f"{arguments.predictions}: {both}; leave one out")
    # 3. OUT, and a report of the content that it cannot hold
    if predicted:
        write_text(target, label_studio.write(records, predicted))
        written = read_annotation_file(target, form).records
    else:
        written = write_records(target, form, records, keys=keys)
    report_lost(target, form, lost_facts(records, written))
    count = len({record.video_id for record in (*records, *predicted)})
    print(f"{target}: {counted(count, 'video')}, {form}")


def _read(path: Path, form: str, arguments: argparse.Namespace) -> Reading:
    """Return the sound records of an annotation file; report the rest."""
    reading = read_annotation_file(path, form, **how_read(arguments))
    if arguments.videos is not None:
        from actionspan.dataset.completing import complete

        for line in complete(reading, arguments.videos):
            print(line, file=sys.stderr)
    if arguments.subjects:
        _name_subjects(reading.records)
    drop_unsound(reading)
    report_left_out(reading)
    if arguments.by_file or arguments.by_recording:
        flag = "--by-file" if arguments.by_file else "--by-recording"
        if arguments.videos is None:
            raise InputError(f"{flag}: needs --videos, the folder of the lists of files")
        from actionspan.dataset.recording_annotations import by_file, by_recording

        if arguments.by_file:
            reading.records = by_file(reading.records)
        else:
            reading.records = by_recording(reading.records, arguments.videos)
    if reading.rejections and not reading.records:
        raise InputError(f"{path}: no video is left")
    return reading


def _name_subjects(records: Iterable[Record]) -> None:
    """Put the subjects into the labels: `feeding (lamb 3)`."""
    for raw in (raw for record in records for raw in record.instances if raw.subject):
        if isinstance(raw.label, str) and raw.label.strip():
            raw.label, raw.subject = f"{raw.label.strip()} ({raw.subject})", ""


def form_of(path: Path, named: str | None) -> str:
    """Return the format in which to write a file.

    Raises:
        InputError: None is named, and no format has the suffix.
    """
    form = named or _BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        raise InputError(f"{path}: the suffix names no format; give --to ({', '.join(WRITABLE)})")
    return form


def write_records(
    path: Path,
    form: str,
    records: Sequence[Record],
    name: str = "",
    keys: Sequence[LabelKey] = (),
) -> list[Record]:
    """Write sound records; return the records that the written files hold.

    Args:
        path: The file; in a format that has one for each video, its folder, unless it is named as
            the file of the only video.
        form: A name of `WRITABLE`.
        records: What to write.
        name: Of the data set, which ActivityNet's format keeps.
        keys: Of labels, which a project of BORIS keeps.
    """

    def write(file: Path, held: Sequence[Record]) -> list[Record]:
        if form == "activitynet":
            text = activitynet.write(held, name)
        elif form == "boris_project":
            text = boris_project.write(held, keys)
        else:
            text = WRITABLE[form].write(held)
        with atomic_path(file) as partial:
            partial.write_text(text, encoding="utf-8", newline="")
        return FORMATS[form].read(str(file), text).records

    # 1. one file for all
    suffix = getattr(WRITABLE[form], "SUFFIX", "")  # of a format with a file for each video
    if not suffix or (len(records) == 1 and path.suffix.lower() == suffix):
        return write(path, records)
    if path.suffix.lower() == suffix or path.is_file():
        each = f"{form} has a file for each video, and there are {len(records)}"
        raise InputError(f"{path}: {each}; name a folder for them")
    # 2. a file for each video
    written = []
    path.mkdir(parents=True, exist_ok=True)
    for record in records:
        if problem := id_problem(record.video_id):
            raise InputError(f"{path}: no file is written: {problem}")
        written += write(path / f"{record.video_id}{suffix}", [record])
    return written


def lost_facts(records: Sequence[Record], written: Sequence[Record]) -> Counter[str]:
    """Count, for each fact, the videos for which the written file does not repeat it.

    Segments with times a little off, as a format has them in milliseconds or frames, are lost as
    "exact times".
    """
    back = {record.video_id: facts(record) for record in written}
    lost = Counter[str]()
    for record in records:
        found = back.get(record.video_id, {})
        for name, value in facts(record).items():
            if found.get(name) != value:
                if name == _WHO and _untimed(value) == _untimed(found.get(name)):
                    continue  # segments have the times
                off = name == "segments" and _are_near(record.parsed(), found.get(name))
                lost["exact times" if off else name] += 1
    return lost


def report_lost(path: Path, form: str, lost: Counter[str]) -> None:
    """Report on standard error the content a format could not hold, and of how many videos."""
    if lost:
        parts = (f"{_CALLED.get(name, name)} ({count:,})" for name, count in lost.items())
        print(f"{path}: videos of which {form} cannot hold: {', '.join(parts)}", file=sys.stderr)


def facts(record: Record) -> dict[str, object]:
    """Return the facts of a record's video, its segments in order of time."""
    known = {name: value for name in FACTS if (value := getattr(record, name))}
    if any(raw.details for raw in record.instances):
        known[_WHO] = sorted(record.bouts())
    return known | {"segments": sorted(record.parsed())}


def _untimed(bouts: object) -> list[tuple[str, ...]]:
    """Return label, subject and modifiers of bouts that are in order of time."""
    return [bout[2:] for bout in bouts] if isinstance(bouts, list) else []


def _are_near(segments: Sequence[Segment], others: object) -> bool:
    """Return whether segments have partners with the same label and nearly the same times."""
    if not isinstance(others, list) or len(segments) != len(others):
        return False
    by_label = [
        sorted((label, start, end) for start, end, label in each) for each in (segments, others)
    ]
    return all(
        one[0] == other[0]
        and math.isclose(one[1], other[1], abs_tol=_COARSEST)
        and math.isclose(one[2], other[2], abs_tol=_COARSEST)
        for one, other in zip(*by_label, strict=True)
    )
