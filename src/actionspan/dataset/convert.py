"""Convert annotations from any form to another."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from actionspan.dataset.formats.records import Reading, Record
from actionspan.dataset.formats.registry import FORMAT_NAMES, FORMATS, read_annotation_file
from actionspan.dataset.rejections import SHOWN
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
    drop_unsound(reading)
    for bad in reading.rejections[:SHOWN]:
        print(f"left out {bad.line()}", file=sys.stderr)
    if len(reading.rejections) > SHOWN:
        print(f"left out {len(reading.rejections) - SHOWN} more", file=sys.stderr)
    records = reading.records
    if reading.rejections and not records:
        raise InputError(f"{arguments.source}: no video is left")
    text = FORMATS[form].write(records)
    with atomic_path(target) as partial:
        partial.write_text(text, encoding="utf-8", newline="")
    lost = what_is_lost(records, FORMATS[form].read(str(target), text).records)
    if lost:
        parts = (f"{name} ({count:,})" for name, count in lost.items())
        print(f"{target}: videos of which {form} cannot hold: {', '.join(parts)}", file=sys.stderr)
    print(f"{target}: {len(records):,} videos, {form}")


def drop_unsound(reading: Reading) -> None:
    """Reject the instances whose times are no numbers or that have no label."""
    for record in reading.records:
        sound = []
        for raw in record.instances:
            try:
                raw.parsed()
            except ValueError as error:
                reading.reject(record.file, raw.row, str(error))
            else:
                sound.append(raw)
        record.instances = sound


def what_is_lost(records: list[Record], written: list[Record]) -> Counter[str]:
    """Count the videos of which the written file does not say what the records say, by fact."""
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
