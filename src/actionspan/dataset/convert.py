"""Convert annotations from any form to another."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from actionspan.dataset.formats.records import RawInstance, Record
from actionspan.dataset.formats.registry import FORMAT_NAMES, FORMATS, read_annotation_file
from actionspan.dataset.rejections import SHOWN, Rejection
from actionspan.errors import InputError
from actionspan.files.storage import atomic_path

FORM_OF_SUFFIX = {".json": "activitynet", ".csv": "table"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("source", type=Path, metavar="IN", help="annotations, or THUMOS14's folder")
    parser.add_argument("target", type=Path, metavar="OUT", help="the file to write")
    parser.add_argument(
        "--from",
        dest="source_form",
        choices=FORMAT_NAMES,
        default="auto",
        help="form of IN (default: auto, told from its content)",
    )
    parser.add_argument(
        "--to",
        dest="target_form",
        choices=tuple(FORMATS),
        help="form of OUT (default: activitynet for .json, table for .csv)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Write OUT; say on standard error which rows were left out and what its form cannot hold."""
    target = arguments.target
    form = arguments.target_form or FORM_OF_SUFFIX.get(target.suffix.lower())
    if form is None:
        raise InputError(f"{target}: the suffix names no form; give --to ({', '.join(FORMATS)})")
    reading = read_annotation_file(arguments.source, arguments.source_form)
    records, bad = sound_records(reading.records)
    bad = reading.rejections + bad
    for rejection in bad[:SHOWN]:
        print(f"left out {rejection.line()}", file=sys.stderr)
    if len(bad) > SHOWN:
        print(f"left out {len(bad) - SHOWN} more", file=sys.stderr)
    if bad and not records:
        raise InputError(f"{arguments.source}: no video is left")
    text = FORMATS[form].write(records)
    with atomic_path(target) as partial:
        partial.write_text(text, encoding="utf-8", newline="")
    lost = what_is_lost(records, FORMATS[form].read(str(target), text).records)
    if lost:
        parts = ", ".join(
            f"{name} of {count:,} video{'s' * (count != 1)}" for name, count in lost.items()
        )
        print(f"{target}: {form} cannot hold: {parts}", file=sys.stderr)
    print(f"{target}: {len(records):,} videos, {form}")


def sound_records(records: list[Record]) -> tuple[list[Record], list[Rejection]]:
    """Drop the instances whose times are no numbers or that have no label, in place.

    Returns:
        The records, and why each dropped instance is one.
    """
    rejections = []
    for record in records:
        sound: list[RawInstance] = []
        for raw in record.instances:
            try:
                raw.parsed()
                sound.append(raw)
            except ValueError as error:
                rejections.append(Rejection(record.file, raw.row, str(error)))
        record.instances = sound
    return records, rejections


def what_is_lost(records: list[Record], written: list[Record]) -> Counter[str]:
    """Count the videos of which something does not come back from the form they were written in.

    Args:
        records: What was to be written.
        written: What the written file says.
    """
    lost: Counter[str] = Counter()
    back = {record.video_id: facts(record) for record in written}
    for record in records:
        again = back.get(record.video_id, {})
        lost.update(name for name, value in facts(record).items() if again.get(name) != value)
    return lost


def facts(record: Record) -> dict[str, object]:
    """Return what a record says of its video, where that is anything."""
    known = {name: getattr(record, name) for name in ("subset", "seconds", "frames", "fps")}
    return {name: value for name, value in known.items() if value} | {
        "segments": [raw.parsed() for raw in record.instances]
    }
