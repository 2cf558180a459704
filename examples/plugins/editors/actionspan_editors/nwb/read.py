"""Read the time intervals of NWB files into a table, or another format of annotations."""

import argparse
from pathlib import Path
from typing import Any

from actionspan.annotations.formats.records import (
    Reading,
    Record,
    drop_unsound,
    record_of_file,
    report_left_out,
)
from actionspan.dataset.convert import form_of, write_records
from actionspan.errors import InputError, counted
from actionspan_editors import details_of, library


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    source = "an NWB file, or a folder of them; the name of each is that of its video"
    parser.add_argument("source", type=Path, metavar="IN", help=source)
    parser.add_argument("out", type=Path, metavar="OUT", help="the table to write, such as a .csv")


def run(arguments: argparse.Namespace) -> None:
    """Write OUT; name on standard error what was left out."""
    source, out = arguments.source, arguments.out
    form = form_of(out, None)
    files = sorted(source.glob("*.nwb")) if source.is_dir() else [source]
    if not files:
        raise InputError(f"{source}: no .nwb files in this folder")
    reading = Reading()
    for file in files:
        if record := record_of_file(str(file), reading):
            _add(file, record)
    drop_unsound(reading)
    report_left_out(reading)
    if not reading.records:
        raise InputError(f"{source}: no video is left")
    write_records(out, form, reading.records)
    print(f"{out}: {counted(len(reading.records), 'video')}, {form}")


def _add(path: Path, record: Record) -> None:
    """Add the rows of all tables of intervals; without a column of labels theirs is its name.

    Raises:
        InputError: The file is missing, is not NWB, or has no time intervals.
    """
    pynwb = library("pynwb")
    try:
        with pynwb.NWBHDF5IO(str(path), "r") as file:
            tables = {
                name: {column: list(table[column][:]) for column in table.colnames}
                for name, table in (file.read().intervals or {}).items()
            }
    except Exception as error:  # HDF5, hdmf and pynwb each have errors of their own
        raise InputError(f"{path}: not an NWB file: {' '.join(str(error).split())}") from None
    if not tables:
        raise InputError(f"{path}: no time intervals")
    for name, columns in tables.items():
        for number, values in enumerate(zip(*columns.values(), strict=True), start=1):
            row: dict[str, Any] = dict(zip(columns, values, strict=True))
            times = float(row["start_time"]), float(row["stop_time"])
            record.add(f"{name}[{number}]", *times, str(row.get("label", name)), **details_of(row))
