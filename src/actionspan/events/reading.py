"""Events of videos from a file of any form, with the durations that they need."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from actionspan.annotations.formats.records import UNLABELLED, drop_unsound, report_left_out
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.tables import Instance, instances_of
from actionspan.arrays import Float64
from actionspan.dataset.settings import add_reading, how_read
from actionspan.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What happens in a video; `seconds` and `rate`, in frames a second, are 0 if not known.

    `file` is the video's, where it is at hand.
    """

    video_id: str
    seconds: float
    rate: float
    instances: tuple[Instance, ...]
    file: Path | None = None

    def bouts(self, label: str | None) -> list[tuple[float, float]]:
        """Return start and end of the events of a label; None: of any, also without a label."""
        return [(one.start, one.end) for one in self.instances if label in (None, one.label)]

    def spans(self, label: str | None) -> Float64:
        """Return when a label applies: (N, 2) seconds, in order and apart, overlaps joined."""
        return joined(self.bouts(label))


def add_events(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `read_events`."""
    forms = "events.csv, corrections.csv, or annotations in any form"
    parser.add_argument("events", type=Path, metavar="EVENTS", help=forms)
    folder = "folder of the videos, for durations and frame rates that EVENTS leaves out"
    parser.add_argument("--videos", type=Path, metavar="FOLDER", help=folder)
    add_reading(parser)


def read_events(
    path: Path, flags: argparse.Namespace, unlabelled: str = UNLABELLED
) -> list[Observed]:
    """Return the videos of a file, by name, with what happens in them.

    Its flags are from `add_events`; events without a label get the label `unlabelled`.

    Raises:
        InputError: The file cannot be read or names no video.
    """
    reading = read_annotation_file(path, **how_read(flags))
    if flags.videos is not None:
        from actionspan.dataset.completing import complete  # opens video files

        complete(reading, flags.videos)
    drop_unsound(reading)
    report_left_out(reading)
    if not reading.records:
        raise InputError(f"{path}: no video in it")
    return [
        Observed(
            video_id=record.video_id,
            seconds=record.duration,
            rate=record.fps,
            instances=tuple(
                replace(one, label=unlabelled) if raw.unlabelled else one
                for one, raw in zip(instances_of(record), record.instances, strict=True)
            ),
            file=record.path,
        )
        for record in sorted(reading.records, key=lambda record: record.video_id)
    ]


def need_durations(observed: list[Observed], path: Path) -> None:
    """Raise InputError if a duration is not known."""
    for one in observed:
        if not one.seconds:
            what = f"the duration of {one.video_id} is not known"
            raise InputError(f"{path}: {what}; name the folder of the videos with --videos")


def joined(spans: list[tuple[float, float]]) -> Float64:
    """Return the union of spans as (N, 2) rows in order and apart."""
    found: list[list[float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return np.array(found, np.float64).reshape(-1, 2)


def overlap(spans: Float64, start: float, end: float) -> float:
    """Return the seconds of spans (N, 2), apart from each other, inside a span of time."""
    inside = np.minimum(spans[:, 1], end) - np.maximum(spans[:, 0], start)
    return float(np.maximum(inside, 0).sum())
