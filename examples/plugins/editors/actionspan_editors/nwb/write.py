"""Write annotations as NWB files, one for each video."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from actionspan.annotations.formats.records import (
    DETAILS,
    Record,
    drop_unsound,
    media_name,
    report_left_out,
)
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.dataset.settings import add_reading, how_read
from actionspan.errors import InputError, counted
from actionspan.storage.writing import atomic_path
from actionspan_editors import library

_UNKNOWN = "1970-01-01"
_COLUMNS = {
    "start_time": "seconds from the beginning of the video",
    "stop_time": "seconds from the beginning of the video",
    "label": "what happens",
    "subject": "who does it",
    "modifiers": "how it is done",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("source", type=Path, metavar="IN", help="annotations of any format")
    parser.add_argument("out", type=Path, metavar="FOLDER", help="for the files {video}.nwb")
    start = f"when the videos begin, an ISO date (default: {_UNKNOWN}, for not known); UTC, unless "
    start += "it has a time zone"
    parser.add_argument("--start", metavar="DATE", help=start)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the files; name on standard error what was left out."""
    begin = _date(arguments.start or _UNKNOWN)
    reading = read_annotation_file(arguments.source, **how_read(arguments))
    drop_unsound(reading)
    report_left_out(reading)
    if not reading.records:
        raise InputError(f"{arguments.source}: no video is left")
    if not arguments.start:
        print(f"session start {_UNKNOWN}, for not known: --start DATE", file=sys.stderr)
    for record in reading.records:
        _write(arguments.out / f"{record.video_id}.nwb", record, begin)
    print(f"{arguments.out}: {counted(len(reading.records), 'video')}, nwb")


def _write(path: Path, record: Record, begin: datetime) -> None:
    pynwb, core, epoch = map(library, ("pynwb", "pynwb.core", "pynwb.epoch"))
    rows = [
        (*segment, *(getattr(raw, name) for name in DETAILS))
        for raw, segment in zip(record.instances, record.parsed(), strict=True)
    ]
    columns = []
    for place, (name, what) in enumerate(_COLUMNS.items()):
        values = np.array([row[place] for row in rows], float if place < 2 else str)
        columns.append(core.VectorData(name=name, description=what, data=values))
    file = pynwb.NWBFile(
        session_description=f"events of {media_name(record)}",
        identifier=record.video_id,
        session_start_time=begin,
    )
    file.add_time_intervals(
        epoch.TimeIntervals(name="events", description="by actionspan", columns=columns)
    )
    with atomic_path(path) as partial, pynwb.NWBHDF5IO(str(partial), "w") as target:
        target.write(file)


def _date(text: str) -> datetime:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        what = "not a date such as 2024-05-31 or 2024-05-31T12:30"
        raise InputError(f"--start {text}: {what}") from None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
