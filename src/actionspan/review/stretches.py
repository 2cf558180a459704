"""Stretches of videos that are not Done: footage around the single events that a person judged.

A stretch reaches to the events on both sides that are listed now and that nobody has judged. It is
assumed that nothing else happens in it. Stretches are learned from like short videos, and nothing
is tried on them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actionspan.annotations.formats.corrections import KEPT
from actionspan.annotations.formats.records import UNLABELLED, RawInstance
from actionspan.annotations.tables import Instance
from actionspan.arrays import temporal_iou
from actionspan.errors import InputError
from actionspan.propose.results import Result, Shown
from actionspan.review.corrections import Corrections
from actionspan.review.footage import Encoded
from actionspan.review.judging import Truth
from actionspan.storage.writing import create_h5, open_h5, read_json, write_json
from actionspan.video.settings import BOUTS, CUTS

_SAME = 0.5  # least tIoU of a listed event with the judged one that it is


class Stretch(NamedTuple):
    """A part of a video, from `start` to `end` in seconds."""

    start: float
    end: float
    judged: int  # events
    instances: Sequence[tuple[float, float, str]]  # starts, ends and labels of those that happen


def stretches_of(
    rows: Sequence[Sequence[str]], listed: Sequence[Sequence[float]], seconds: float
) -> list[Stretch]:
    """Return the stretches of a video around the events that a person judged.

    Args:
        rows: Of corrections.csv; a row must be a segment of the video to count.
        listed: Starts and ends in seconds of the events that the page lists.
        seconds: The duration of the video.
    """
    # 1. the judged events
    judged: list[tuple[float, float, str, bool]] = []
    for _, first, last, label, status, *_ in rows:
        with suppress(ValueError):
            raw = RawInstance(start=first, end=last, label=label or UNLABELLED)
            start, end, named = raw.checked(seconds)
            judged.append((max(start, 0.0), min(end, seconds), named, status in KEPT))
    places = [row[:2] for row in judged]
    # 2. the listed events that nobody has judged
    best = temporal_iou(listed, places).max(axis=1, initial=0)
    others = [place for place, tiou in zip(listed, best, strict=True) if tiou < _SAME]
    # 3. the footage up to these; where it meets, several events have one stretch
    found: list[Stretch] = []
    for start, end, label, happens in sorted(judged):
        after = max([0.0, *(min(last, start) for first, last in others if first < start)])
        until = min([seconds, *(max(first, end) for first, last in others if last > end)])
        judgements, instances = 1, [(start, end, label)] * happens
        if found and after <= found[-1].end:
            before = found.pop()
            after, until = before.start, max(before.end, until)
            judgements, instances = before.judged + 1, [*before.instances, *instances]
        found.append(Stretch(after, until, judgements, instances))
    return found


def write_stretches(
    path: Path, corrections: Corrections, results: Mapping[str, Result]
) -> list[str]:
    """Write the stretches of the judged videos with results; return those that have any."""
    kept, found = corrections.all(), dict[str, list[Stretch]]()
    for name in corrections.judged():
        if name in results:
            listed = [row["segment"] for row in Shown().events(results[name].events)]
            own = stretches_of(kept[name]["rows"], listed, results[name].duration_seconds)
            found |= {name: own} if own else {}
    write_json(path, found, indent=None)
    return list(found)


def read_stretches(path: Path) -> dict[str, list[Stretch]]:
    """Read the stretches by video that the page wrote.

    Raises:
        InputError: The file is missing or damaged.
    """
    try:
        content = read_json(path).items()
        return {name: [Stretch(*row) for row in rows] for name, rows in content}
    except (AttributeError, TypeError):
        raise InputError(f"{path}: not the stretches that `review` writes") from None


def cut_out(
    stretches: Sequence[tuple[Encoded, Stretch]], shard: Path
) -> tuple[list[Encoded], Truth]:
    """Write the features of stretches like features of videos; return both and the instances.

    Args:
        stretches: Of videos with features; a stretch without a snippet is left out.
        shard: The file to write.

    Raises:
        InputError: Features cannot be read.
    """
    videos, truth = [], dict[str, Sequence[Instance]]()
    with create_h5(shard, "") as file:
        for one, (start, end, _, instances) in stretches:
            raw, facts = one.read()
            inside = (facts["time"] >= start) & (facts["time"] < end)
            if not inside.any():
                continue
            # 1. the snippets and marks inside, on a time axis of their own
            name = f"{one.video.video_id}@{start:.3f}-{end:.3f}"
            marks: Mapping[str, Any] = {key: facts.pop(key, None) for key in (CUTS, BOUTS)}
            group = file.create_group(name)
            for key, values in {**raw, **facts}.items():
                group[key] = values[inside] - (start if key == "time" else 0)
            for key, values in marks.items():
                if values is not None:
                    group[key] = _marks_within(values, start, end, times=1 + (key == BOUTS))
            with open_h5(one.shard) as whole:
                file.attrs.update({key: whole.attrs[key] for key in ("description", "settings")})
            # 2. the video, and what happens in it
            frames = max(1, round((end - start) * one.video.fps))
            video = replace(one.video, video_id=name, duration_seconds=end - start, frames=frames)
            videos.append(Encoded(video=video, shard=shard))
            truth[name] = tuple(
                Instance(start=first - start, end=last - start, label=label)
                for first, last, label in instances
            )
    return videos, truth


def _marks_within(rows: Any, start: float, end: float, *, times: int) -> Any:
    """Return the cuts or bouts within a stretch; their first columns are one or two times."""
    kept = rows[(rows[:, times - 1] > start) & (rows[:, 0] < end)]
    return np.column_stack([kept[:, :times].clip(start, end) - start, kept[:, times:]])
