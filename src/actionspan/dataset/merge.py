"""Put corrections into the annotations that a model learns from."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from actionspan.annotations.formats.records import (
    UNLABELLED,
    Bout,
    RawInstance,
    Reading,
    Record,
    drop_unsound,
    report_left_out,
)
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.tables import stated_name
from actionspan.arrays import temporal_iou
from actionspan.dataset.convert import (
    add_target_form,
    form_of,
    lost_facts,
    report_lost,
    write_records,
)
from actionspan.dataset.matching import Names
from actionspan.dataset.settings import add_reading, how_read
from actionspan.errors import InputError, counted
from actionspan.storage.inputs import inputs_kept

_NAMED = 5  # videos in a line
_ROUNDING = 0.000501  # seconds: the page writes milliseconds
SAME = 0.5  # least tIoU of an instance with its earlier self


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("annotations", type=Path, metavar="ANNOTATIONS", help="in any format")
    corrected = (
        "corrections.csv of a page, a corrected proposals.csv, or annotations in any format: "
        "all that happens in the videos they name; of two about a video the last counts"
    )
    add("corrected", type=Path, nargs="+", metavar="CORRECTED", help=corrected)
    add("--out", type=Path, required=True, metavar="FILE", help="the annotations to write")
    add_target_form(parser, "form", "their format")
    add("--overwrite", action="store_true", help="let --out be the file ANNOTATIONS")
    parser.set_defaults(replaces="annotations")
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the annotations and report their changes."""
    # 1. where to write
    out = arguments.out
    form = form_of(out, arguments.form)
    before = arguments.annotations
    if not arguments.overwrite and out.exists() and before.exists() and out.samefile(before):
        raise InputError(f"--out {out}: holds the annotations; --overwrite replaces them")
    # 2. the sound annotations; corrections must be sound in each row
    with inputs_kept() if arguments.overwrite else nullcontext():  # else a folder's files are kept
        reading = read_annotation_file(before, **how_read(arguments))
    emptied = drop_unsound(reading)
    report_left_out(reading)
    corrections: list[Record] = []
    for path in arguments.corrected:  # a lost row is a lost instance
        correction = read_annotation_file(path, strict=True, **how_read(arguments))
        drop_unsound(correction)
        corrections += correction.records
    counts = Counter(record.video_id for record in corrections)
    if again := [video_id for video_id, count in counts.items() if count > 1]:
        shown = ", ".join(again[:_NAMED]) + ", …" * (len(again) > _NAMED)
        line = f"{counted(len(again), 'video')} corrected more than once, of which"
        print(f"{line} the last counts: {shown}", file=sys.stderr)
    # 3. one of both
    try:
        records, changes = merge(reading.records, corrections, emptied)
    except ValueError as error:
        raise InputError(str(error)) from None
    name = stated_name(before)
    report_lost(out, form, lost_facts(records, write_records(out, form, records, name)))
    print(f"{out}: {counted(len(records), 'video')}, {form}; {changes.line()}")


@dataclass(kw_only=True)
class Changes:
    """How many videos and instances a merge has changed."""

    corrected: int = 0  # videos
    new: int = 0  # of these, videos that the annotations did not name
    added: int = 0  # instances from here on
    moved: int = 0
    relabelled: int = 0
    removed: int = 0
    kept: int = 0

    def line(self) -> str:
        """Return the changes as a line for people."""
        new = f" ({self.new} new)" if self.new else ""
        return (
            f"{counted(self.corrected, 'video')} corrected{new}: instances "
            f"{self.added} added, {self.moved} moved, {self.relabelled} with another label, "
            f"{self.removed} removed, {self.kept} as before"
        )


def merge(
    records: Sequence[Record], corrections: Iterable[Record], emptied: Sequence[Record] = ()
) -> tuple[list[Record], Changes]:
    """Return annotations in which each corrected video has the instances of its correction.

    Subset, duration and frame rate of a video stay. An instance without a label or a subject of its
    own gets the former instance's, if there was one, and with the same label its modifiers.

    Args:
        records: The annotations, with sound instances.
        corrections: The truth of some videos; of two for a video the last counts.
        emptied: Videos of the annotations of which no row is left, and which are there again only
            if they are corrected.

    Raises:
        InputError: A correction is outside its video.
    """
    merged = {record.video_id: record for record in records}
    before = {record.video_id: record for record in emptied} | merged
    names, changes = Names(before), Changes()
    latest: dict[str, Record] = {}
    for correction in corrections:
        latest[names.find(correction.video_id) or correction.video_id] = correction
    for video_id, correction in latest.items():
        known = before.get(video_id)
        changes.corrected += 1
        changes.new += known is None
        base = replace(known or correction, instances=known.instances if known else [])
        base.complete(correction)
        # a tool may count frames at a rate of its own
        fps = correction.fps or base.fps
        now = replace(base, file=correction.file, instances=correction.instances, fps=fps)
        drop_unsound(Reading(records=[now], strict=True))
        merged[video_id] = replace(base, instances=_merged(base.bouts(), now.bouts(), changes))
    return list(merged.values()), changes


def _merged(before: Sequence[Bout], now: Sequence[Bout], changes: Changes) -> list[RawInstance]:
    """Return the instances of a video in order of time, and count the changes."""
    partners = _partners(before, now)
    result = []
    for place, (start, end, label, subject, modifiers) in enumerate(now):
        old = before[partners[place]] if place in partners else None
        if old is not None and max(abs(start - old[0]), abs(end - old[1])) <= _ROUNDING:
            start, end = old[:2]
        if old is not None:
            label = old[2] if label == UNLABELLED else label
            subject = subject or old[3]
            # of another action they would be wrong
            modifiers = modifiers or (old[4] if label == old[2] else "")
        result.append((start, end, label, subject, modifiers))
        if old is None:
            changes.added += 1
        elif old[:3] == (start, end, label):
            changes.kept += 1
        else:
            changes.moved += old[:2] != (start, end)
            changes.relabelled += old[2] != label
    changes.removed += len(before) - len(partners)
    return [
        RawInstance(start=start, end=end, label=label, subject=subject, modifiers=modifiers)
        for start, end, label, subject, modifiers in sorted(result)
    ]


def _partners(before: Sequence[Bout], now: Sequence[Bout]) -> dict[int, int]:
    """Return the place before of each instance that was there: the most alike first, one each."""
    tious = temporal_iou(*([one[:2] for one in bouts] for bouts in (now, before))).tolist()
    pairs = [
        (-tiou, before[old][2] != now[new][2], before[old][3] != now[new][3], new, old)
        for new, row in enumerate(tious)
        for old, shared in enumerate(row)
        # an instance without length is itself
        if (tiou := 1.0 if before[old][:2] == now[new][:2] else shared) >= SAME
    ]
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for *_, new, old in sorted(pairs):
        if new not in partners and old not in taken:
            partners[new] = old
            taken.add(old)
    return partners
