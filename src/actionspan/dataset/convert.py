"""Convert annotations from any form to another."""

import argparse
import sys
from pathlib import Path

from actionspan.dataset.checking import drop_unsound, report_left_out
from actionspan.dataset.formats.registry import FORMAT_NAMES, WRITABLE, read_annotation_file
from actionspan.dataset.writing import form_of, report_lost, what_is_lost, write_records
from actionspan.errors import InputError, counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "source", type=Path, metavar="IN", help="annotations, or a folder of their files"
    )
    parser.add_argument(
        "target", type=Path, metavar="OUT", help="the file to write; for elan, a folder"
    )
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
        choices=tuple(WRITABLE),
        help="form of OUT (default: by its suffix, .json is activitynet, .csv table, .eaf, .boris)",
    )
    parser.add_argument(
        "--videos",
        type=Path,
        metavar="FOLDER",
        help="the videos, for durations and frame rates that IN lacks",
    )


def run(arguments: argparse.Namespace) -> None:
    """Write OUT; say on standard error which rows were left out and what its form cannot hold."""
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
