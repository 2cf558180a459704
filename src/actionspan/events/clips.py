"""Cut events out of videos, as files or one reel, or list them for an editor."""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from actionspan.dataset.settings import add_reading
from actionspan.errors import InputError, JobError, counted

if TYPE_CHECKING:
    from actionspan.events.cutting import Clip
    from actionspan.events.reading import Observed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    forms = "events.csv, corrections.csv, or annotations in any form"
    add("events", type=Path, metavar="EVENTS", help=forms)
    add("--videos", type=Path, required=True, metavar="FOLDER", help="folder of the videos")
    out = "folder to write (default: clips, or nothing where --reel alone is asked for)"
    add("-o", "--out", type=Path, help=out)
    exact = "encode again, to begin and end at the event's frames (default: copy the streams, "
    exact += "from the last key frame before an event)"
    add("--exact", action="store_true", help=exact)
    reel = "one video of all events, encoded again"
    add("--reel", dest="out_reel", type=Path, metavar="FILE.mp4", help=reel)
    add("--label", action="append", metavar="LABEL", help="only these events; may be repeated")
    around = "seconds to show before and after each event (default: 0)"
    add("--around", type=float, default=0.0, metavar="SECONDS", help=around)
    lists = "write no clip, but lists: VIDEO.csv for LosslessCut and VIDEO.edl for editors"
    add("--lists", action="store_true", help=lists)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> int:
    """Cut the clips; a video that cannot be read is reported, and the others are cut."""
    from actionspan.events import cutting
    from actionspan.events.reading import read_events

    if not arguments.around >= 0:
        raise InputError(f"--around {arguments.around}: 0 seconds or more")
    # 1. the events of videos that are there
    observed = read_events(arguments.events, arguments)
    labels = arguments.label or {each.label for one in observed for each in one.instances}
    clips = list(chosen(observed, arguments.videos, labels, arguments.around))
    failed = sum(each.label in labels for one in observed for each in one.instances) - len(clips)
    if not clips:
        raise InputError(f"{arguments.events}: no event of a video in {arguments.videos}")
    # 2. lists or clips, unless the reel alone is asked for
    folder, reel = arguments.out or Path("clips"), arguments.out_reel
    if arguments.lists:
        _write_lists(clips, folder)
    elif arguments.out is not None or reel is None:
        made = 0
        for clip in clips:
            try:
                cut(clip, folder, exact=arguments.exact)
                made += 1
            except JobError:
                raise
            except InputError as error:
                print(str(error), file=sys.stderr)
        failed += len(clips) - made
        print(f"{folder}: {counted(made, 'clip')}")
    # 3. the reel
    if reel is not None:
        cutting.write_reel(clips, reel)
        print(f"{reel}: {counted(len(clips), 'event')}")
    return 1 if failed else 0


def cut(clip: "Clip", folder: Path, *, exact: bool) -> None:
    """Copy a clip, or encode it where that is asked for or it cannot be copied."""
    from actionspan.events import cutting

    with suppress(cutting.NotCopiedError):
        if not exact:
            cutting.copy_clip(clip, folder)
            return
    cutting.encode_clip(clip, folder)


def chosen(
    observed: "list[Observed]", folder: Path, labels: Collection[str], around: float
) -> "Iterator[Clip]":
    """Yield the clips of the events with one of the labels; each has a name of its own."""
    from actionspan.annotations.formats.records import UNLABELLED
    from actionspan.dataset.matching import Names
    from actionspan.dataset.sharding import find_videos
    from actionspan.events.cutting import Clip
    from actionspan.storage.text import file_name

    files, taken, count = find_videos(folder), set[str](), Counter[str]()
    names = Names(files)
    for one in observed:
        video_id = names.find(one.video_id)
        wanted = [each for each in one.instances if each.label in labels]
        if video_id is None and wanted:
            print(f"{one.video_id}: no such video in {folder}", file=sys.stderr)
        if video_id is None:
            continue
        for each in sorted(wanted, key=lambda each: each.start):
            count[video_id] += 1
            start, end = max(each.start - around, 0), each.end + around
            end = min(end, one.seconds) if one.seconds else end
            label = "" if each.label == UNLABELLED else each.label
            called = "-".join(filter(None, (video_id, f"{count[video_id]:03d}", label)))
            name = file_name(called.replace(" ", "_"))
            name = name if name not in taken else file_name(f"{called} ")
            taken.add(name)
            yield Clip(files[video_id], start, end, each.label, name)


def _write_lists(clips: "list[Clip]", folder: Path) -> None:
    """Write a list of cuts for each video, in two forms."""
    from actionspan.annotations.formats.rows import csv_lines
    from actionspan.dataset.timeline import read_timeline
    from actionspan.storage.text import file_name
    from actionspan.storage.writing import write_text

    by_video: dict[Path, list[Clip]] = {}
    for clip in clips:
        by_video.setdefault(clip.video, []).append(clip)
    for video, own in by_video.items():
        name = file_name(video.stem)
        rows = [[f"{clip.start:.3f}", f"{clip.end:.3f}", clip.label] for clip in own]
        write_text(folder / f"{name}.csv", csv_lines(rows))
        write_text(folder / f"{name}.edl", edl(own, read_timeline(video).rate))
    print(f"{folder}: lists of {counted(len(by_video), 'video')}")


def edl(clips: "list[Clip]", rate: float) -> str:
    """Return an edit decision list (CMX 3600) of clips of a video, one after the other.

    Editors count time in frames of the rate that the file states, also where its own rate varies.
    """
    from actionspan.annotations.formats.times import frames_of

    lines, at = [f"TITLE: {clips[0].video.stem}", "FCM: NON-DROP FRAME"], 0
    rounded = max(1, round(rate))
    for number, clip in enumerate(clips, start=1):
        first, last = frames_of((clip.start, clip.end), rate)
        length = last + 1 - first
        times = [_timecode(frame, rounded) for frame in (first, last + 1, at, at + length)]
        lines.append(f"{number:03d}  AX       V     C        {' '.join(times)}")
        lines.append(f"* FROM CLIP NAME: {clip.video.name}")
        if clip.label:
            lines.append(f"* COMMENT: {clip.label}")
        at += length
    return "\n".join(lines) + "\n"


def _timecode(frame: int, rate: int) -> str:
    seconds, frames = divmod(frame, rate)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}:{frames:02d}"
