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
        help="form of IN (default: auto, by its content)",
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
    # what of IN is sound
    reading = read_annotation_file(arguments.source, arguments.source_form)
    _drop_unsound(reading)
    for bad in reading.rejections[:SHOWN]:
        print(f"left out {bad.line()}", file=sys.stderr)
    if len(reading.rejections) > SHOWN:
        print(f"left out {len(reading.rejections) - SHOWN} more", file=sys.stderr)
    records = reading.records
    if reading.rejections and not records:
        raise InputError(f"{arguments.source}: no video is left")
    # OUT, and what it cannot hold
    text = FORMATS[form].write(records)
    with atomic_path(target) as partial:
        partial.write_text(text, encoding="utf-8", newline="")
    lost = what_is_lost(records, FORMATS[form].read(str(target), text).records)
    if lost:
        parts = (f"{name} ({count:,})" for name, count in lost.items())
        print(f"{target}: videos of which {form} cannot hold: {', '.join(parts)}", file=sys.stderr)
    print(f"{target}: {len(records):,} videos, {form}")


def _drop_unsound(reading: Reading) -> None:
    """Reject the instances that have no label or whose times are not numbers."""
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
    """Count, for each fact, the videos for which the written file does not repeat it."""
    back = {record.video_id: facts(record) for record in written}
    return Counter(
        name
        for record in records
        for name, value in facts(record).items()
        if back.get(record.video_id, {}).get(name) != value
    )


def facts(record: Record) -> dict[str, object]:
    """Return what a record says about its video."""
    values = {name: getattr(record, name) for name in ("subset", "seconds", "frames", "fps")}
    segments = [raw.parsed() for raw in record.instances]
    return {name: value for name, value in values.items() if value} | {"segments": segments}
