"""Segments of videos: their labels and files in ActivityNet result form (JSON) and as CSV."""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TextIO, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.storage.json_stream import RepeatedMemberError, members
from actionspan.storage.text import safe_cell
from actionspan.storage.writing import atomic_path, read_json

if TYPE_CHECKING:
    from actionspan.video.zones import ZoneMotion  # its room takes a decoder's time to import

VERSION = "actionspan 1"
_CSV_COLUMNS = ("video_id", "rank", "start_seconds", "end_seconds", "score")


class Row(TypedDict):
    """A segment of a video as files and pages have it: a proposal, an event or a detection.

    A row that was read from a file keeps what else the file gives.
    """

    score: float  # higher is better; the chance of an event to be right at tIoU 0.5
    segment: Sequence[float]  # start and end in seconds
    label: NotRequired[str]
    label_score: NotRequired[float]
    zone: NotRequired[str]  # of several, the one in which most moves
    rank: NotRequired[int]  # of an event without a chance, with 1 / rank as its score


def result_rows(segments: ArrayLike, scores: ArrayLike) -> list[Row]:
    """Return one video's (K, 2) segments in seconds and (K,) scores in ActivityNet result form."""
    pairs = zip(np.asarray(scores).tolist(), np.asarray(segments).tolist(), strict=True)
    return [{"score": score, "segment": segment} for score, segment in pairs]


def ranked_rows(segments: ArrayLike) -> list[Row]:
    """Return one video's (K, 2) segments in seconds, best first, of unknown chances."""
    rows = result_rows(segments, 1 / np.arange(1, len(np.asarray(segments)) + 1))
    return [{**row, "rank": rank} for rank, row in enumerate(rows, start=1)]


def zoned_rows(rows: Sequence[Row], motion: "ZoneMotion | None") -> list[Row]:
    """Return rows with the zone in which most moves; as they are without the motion of zones."""
    if motion is None:
        return list(rows)
    zones = motion.most([row["segment"] for row in rows])
    return [{**row, "zone": zone} for row, zone in zip(rows, zones, strict=True)]


def write_proposals(
    results: Iterable[tuple[str, Iterable[Row]]],
    json_path: Path,
    csv_path: Path | None = None,
    *,
    labelled: bool = False,
    zoned: bool = False,
) -> None:
    """Write video ids and their proposals, best first; see `proposal_files`."""
    with proposal_files(json_path, csv_path, labelled=labelled, zoned=zoned) as write:
        for video_id, rows in results:
            write(video_id, rows)


@contextmanager
def proposal_files(
    json_path: Path,
    csv_path: Path | None = None,
    *,
    labelled: bool = False,
    zoned: bool = False,
    frames: Callable[[str, Sequence[float]], Sequence[int]] | None = None,
    more: tuple[Sequence[str], Callable[[str, Sequence[float]], Sequence[object]]] | None = None,
) -> Iterator[Callable[[str, Iterable[Row]], None]]:
    """Yield a function that writes the next video's proposals, best first; files are atomic.

    Args:
        json_path: ActivityNet result form, one video a line.
        csv_path: A table with each proposal's rank, 1 the best; None: no table.
        labelled: Whether the table has the rows' labels and their scores.
        zoned: Whether it has their zones.
        frames: Returns the first and the last frame of a segment of a video by its id, nothing
            where they are not known; with it the table has them.
        more: Further columns of the table, and their cells for a segment of a video by its id.
    """
    with ExitStack() as stack:

        def open_output(path: Path) -> TextIO:
            partial = stack.enter_context(atomic_path(path))
            return stack.enter_context(partial.open("w", newline="", encoding="utf-8"))

        file = open_output(json_path)
        table = None
        if csv_path is not None:
            table = csv.writer(open_output(csv_path), lineterminator="\n")
            columns = _CSV_COLUMNS + (("label", "label_score") if labelled else ())
            columns += ("zone",) if zoned else ()
            columns += () if frames is None else ("first_frame", "last_frame")
            table.writerow((*columns, *(more[0] if more else ())))
        file.write(f'{{"version": {json.dumps(VERSION)}, "results": {{')
        separator = "\n"

        def write(video_id: str, rows: Iterable[Row]) -> None:
            nonlocal separator
            rows = list(rows)
            file.write(f"{separator}{json.dumps(video_id)}: {json.dumps(rows)}")
            separator = ",\n"
            if table is None:
                return
            name, lines = safe_cell(video_id), []
            for rank, row in enumerate(rows, start=1):
                score = "" if "rank" in row else f"{row['score']:.6g}"
                cells: list[object] = [name, rank, *map(_milliseconds, row["segment"]), score]
                if labelled:
                    cells += [safe_cell(row["label"]), f"{row['label_score']:.6g}"]
                if zoned:
                    cells.append(safe_cell(row.get("zone", "")))
                if frames is not None:
                    cells += frames(video_id, row["segment"]) or ("", "")
                cells += more[1](video_id, row["segment"]) if more else ()
                lines.append(cells)
            table.writerows(lines)

        yield write
        file.write('\n}, "external_data": {}}\n')


def _milliseconds(seconds: float) -> str:
    """Return `str(round(seconds, 3))`, which converts a float three times."""
    if not isinstance(seconds, float) or abs(seconds) >= 1e12:  # more digits than it holds
        return str(round(seconds, 3))
    text = f"{seconds:.3f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def read_proposals(path: Path, *, below_zero: bool = False) -> dict[str, list[Row]]:
    """Read `{"results": {video_id: [{"score": …, "segment": [start, end]}, …]}}`.

    Other keys of the file are ignored, other keys of a row are kept. A score may be `below_zero`
    where only the order of proposals counts, as in scoring (logits); Soft-NMS, which multiplies
    scores by factors below 1, would lift it.

    Raises:
        InputError: The file is missing or not in that form; the line names the file, the video
            and the row, counted from 1.
    """
    return dict(iterate_proposals(path, below_zero=below_zero))


def iterate_proposals(path: Path, *, below_zero: bool = False) -> Iterator[tuple[str, list[Row]]]:
    """Yield what `read_proposals` returns, video by video; only one is in memory."""
    for video_id, rows in read_results(path):
        if not isinstance(rows, list):
            line = f"proposals: a list is needed, not {type(rows).__name__}"
            raise InputError(f"{path}: video {video_id!r}, {line}")
        for number, row in enumerate(rows, start=1):
            if wrong := _what_is_wrong(row, below_zero):
                raise InputError(f"{path}: video {video_id!r}, proposal {number}: {wrong}")
        yield video_id, rows


def _what_is_wrong(row: Any, below_zero: bool) -> str:
    """Return why a row is not a proposal; empty if it is one."""
    segment, score = (row.get("segment"), row.get("score")) if isinstance(row, dict) else ((), None)
    numbers = [*segment, score] if isinstance(segment, list) else []
    if len(numbers) != 3 or not all(map(_is_number, numbers)):
        return 'not of the form {"segment": [start, end], "score": number}'
    start, end, score = numbers
    wrong = ""
    if not all(map(math.isfinite, numbers)):
        wrong = "not finite"
    elif start > end:
        wrong = "start is after end"
    elif score < 0 and not below_zero:
        wrong = "a score of 0 or more is needed here"
    return wrong and f"[{start:g}, {end:g}] with score {score:g}: {wrong}"


def _is_number(value: Any) -> bool:
    """Return whether this is a number that a float can hold, NaN and infinities included."""
    return isinstance(value, float) or type(value) is int and abs(value) <= sys.float_info.max


def read_results(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each video id of `{"results": {video_id: …}}` with its proposals.

    Raises:
        InputError: The file is missing, is not JSON in UTF-8 or has no such object.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from members(file, "results")
    except RepeatedMemberError as error:
        raise InputError(f"{path}: {error}; keep one") from None
    except KeyError:
        read_json(path)
        form = '{"results": {video: [{"score": 0.9, "segment": [1.0, 2.5]}]}}'
        raise InputError(f"{path}: not a result file: no proposals in it; write {form}") from None
    except (OSError, ValueError, RecursionError):
        read_json(path)  # names the line
        raise


def label_rows(rows: Sequence[Row], labels: Sequence[str], scores: Float64) -> list[Row]:
    """Return one video's proposals with the best class of each and its score.

    Scores (N, K) are of the K labels, 0…1; of equal scores the first label counts. Without
    labels the rows stay as they are.
    """
    if not labels:
        return list(rows)
    best = scores.argmax(axis=1).tolist()
    return [
        {**row, "label": labels[place], "label_score": float(values[place])}
        for row, place, values in zip(rows, best, scores, strict=True)
    ]


def detection_rows(
    rows: Sequence[Row], labels: Sequence[str], scores: Float64, classes: int
) -> list[Row]:
    """Return one video's detections, best first: each proposal as each of its best `classes`.

    A detection's score is the proposal's, 0 or more, times the class's. Other arguments are as
    in `label_rows`.
    """
    best = np.argsort(-scores, axis=1, kind="stable")[:, :classes]
    detections: list[Row] = []
    for row, places, values in zip(rows, best.tolist(), scores, strict=True):
        for place in places:
            score, segment = row["score"] * float(values[place]), list(row["segment"])
            detections.append({"label": labels[place], "score": score, "segment": segment})
    return sorted(detections, key=lambda row: -row["score"])
