"""Put corrections into the annotations that a model learns from."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from actionspan.dataset.checking import drop_unsound, report_left_out
from actionspan.dataset.formats.records import Record
from actionspan.dataset.formats.registry import WRITABLE, read_annotation_file
from actionspan.dataset.merging import merge
from actionspan.dataset.tables import stated_name
from actionspan.dataset.writing import form_of, report_lost, what_is_lost, write_records
from actionspan.errors import InputError, counted

_NAMED = 5  # videos in a line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("annotations", type=Path, metavar="ANNOTATIONS", help="in any form")
    parser.add_argument(
        "corrected",
        type=Path,
        nargs="+",
        metavar="CORRECTED",
        help="corrections.csv of a page, a corrected proposals.csv, or annotations in any form: "
        "all that happens in the videos they name; of two about a video the last counts",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the annotations to write"
    )
    parser.add_argument(
        "--to",
        dest="form",
        choices=tuple(WRITABLE),
        help="their form (default: by the suffix, .json is activitynet, .csv table, .eaf, .boris)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="let --out be the file ANNOTATIONS"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the annotations and say what is other in them."""
    out = arguments.out
    form = form_of(out, arguments.form)
    for path in (arguments.annotations, *arguments.corrected):
        if out.exists() and path.exists() and out.samefile(path):
            if path != arguments.annotations:
                raise InputError(f"--out {out}: is one of the corrections; choose another file")
            if not arguments.overwrite:
                raise InputError(f"--out {out}: holds the annotations; --overwrite replaces them")
    reading = read_annotation_file(arguments.annotations)
    emptied = drop_unsound(reading)
    report_left_out(reading)
    corrections = [record for path in arguments.corrected for record in _corrections(path)]
    counts = Counter(record.video_id for record in corrections)
    if again := [video_id for video_id, count in counts.items() if count > 1]:
        shown = ", ".join(again[:_NAMED]) + ", …" * (len(again) > _NAMED)
        line = f"{counted(len(again), 'video')} corrected more than once, of which"
        print(f"{line} the last counts: {shown}", file=sys.stderr)
    try:
        records, changes = merge(reading.records, corrections, emptied)
    except ValueError as error:
        raise InputError(str(error)) from None
    name = stated_name(arguments.annotations)
    report_lost(out, form, what_is_lost(records, write_records(out, form, records, name)))
    print(f"{out}: {counted(len(records), 'video')}, {form}; {changes.line()}")


def _corrections(path: Path) -> list[Record]:
    """Read corrections, each row of which must be sound: a lost one would be a lost instance."""
    reading = read_annotation_file(path, strict=True)
    drop_unsound(reading)
    return reading.records
