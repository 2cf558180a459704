"""Ground truth and proposals as people keep them in files, read into arrays by video."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from actionspan.dataset.formats.reading import read_annotation_file, read_text
from actionspan.dataset.formats.records import Reading, Record, to_number
from actionspan.dataset.formats.tables import read_video_info
from actionspan.errors import InputError
from actionspan.evaluation.rows import Floats, check_rows
from actionspan.files.storage import read_json
from actionspan.files.text import read_utf8

ALL_SUBSETS = "all"
TABLES = (".csv", ".tsv")


def read_ground_truth(
    path: Path, subset: str = "validation", video_info: Path | None = None
) -> dict[str, Floats]:
    """Read the instances of one subset: (G, 2) starts and ends in seconds for each video.

    Instances of zero length are kept, as the official protocol does.

    Args:
        path: ActivityNet JSON (the official file or ours), `anet_anno_action.json`, or a table:
            `thumos14_test_groundtruth.csv` and the like, whose times in seconds count and whose
            instances of the class Ambiguous are instances.
        subset: Name of the subset, or `"all"`.
        video_info: `video_info_new.csv`, which names the subsets of `anet_anno_action.json`;
            where not given, the file of that name beside `path` is read if there is one.

    Raises:
        InputError: The file is not in one of these forms, or has no such subset.
    """
    if path.suffix.lower() in TABLES:
        return _read_table(path, subset)
    content = read_json(path)
    if isinstance(content, dict) and isinstance(content.get("database"), dict):
        entries = content["database"]
        subsets = {
            video_id: _field(path, video_id, entry, "subset", str)
            for video_id, entry in entries.items()
        }
    elif isinstance(content, dict) and _is_action_list(content):
        entries = content
        subsets = {} if subset == ALL_SUBSETS else _read_subsets(path, video_info)
    else:
        raise InputError(
            f"{path}: not ground truth: neither ActivityNet JSON (with 'database') nor the form "
            "of anet_anno_action.json"
        )
    _check_subset(path, subset, (subsets.get(video_id) for video_id in entries))
    truth = {}
    for video_id, entry in entries.items():
        if subset in (ALL_SUBSETS, subsets.get(video_id)):
            instances = _field(path, video_id, entry, "annotations", list)
            truth[video_id] = _rows(
                path, video_id, "instance", instances, lambda item: tuple(item["segment"]), 2
            )
    if not any(map(len, truth.values())):
        raise InputError(f"{path}: subset {subset!r} has no instance to find")
    return truth


def read_frame_rates(path: Path) -> dict[str, float]:
    """Read the frames a second of the videos that a table gives one for.

    Args:
        path: A table with a column of videos and one of rates, such as `videos.tsv` (`video_id`,
            `fps`) or `thumos14_test_groundtruth.csv` (`video-name`, `frame-rate`). A video whose
            rate is empty or 0 is as good as not there.

    Raises:
        InputError: The file is no such table, or gives a video two rates.
    """
    reading = read_video_info(str(path), read_text(path))
    return {record.video_id: record.fps for record in _sound(reading) if record.fps}


def read_proposals(path: Path) -> dict[str, Floats]:
    """Read an ActivityNet result file: (P, 3) start, end and score for each video, in its order.

    Raises:
        InputError: The file is not in that form, or a row is reversed or not finite.
    """
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        raise InputError(f"{path}: not a result file: no object 'results' of videos")
    return {
        video_id: _rows(
            path, video_id, "proposal", items, lambda item: (*item["segment"], item["score"]), 3
        )
        for video_id, items in content["results"].items()
    }


def _read_table(path: Path, subset: str) -> dict[str, Floats]:
    """Read the instances of one subset from a table of annotations, a row an instance."""
    records = _sound(read_annotation_file(path))
    _check_subset(path, subset, (record.subset for record in records))
    wanted = [record for record in records if subset in (ALL_SUBSETS, record.subset)]
    truth = {record.video_id: _segments(path, record) for record in wanted}
    if not any(map(len, truth.values())):
        raise InputError(f"{path}: subset {subset!r} has no instance to find")
    return truth


def _segments(path: Path, record: Record) -> Floats:
    """Return one video's (G, 2) instances, naming the first row that is not one."""
    segments = np.empty((len(record.instances), 2))
    for index, instance in enumerate(record.instances):
        times = to_number(instance.start), to_number(instance.end)
        if times[0] is None or times[1] is None or times[0] > times[1]:
            raise InputError(
                f"{path}: row {instance.row}: video {record.video_id!r}: from {instance.start!r} "
                f"to {instance.end!r}: two times in seconds are needed, start <= end"
            )
        segments[index] = times
    return segments


def _sound(reading: Reading) -> list[Record]:
    """Return the records of a file all of whose rows could be read."""
    for bad in reading.rejections:
        raise InputError(f"{bad.file}: row {bad.row}: {bad.reason}")
    return reading.records


def _check_subset(path: Path, subset: str, names: Iterable[str | None]) -> None:
    """Refuse a subset that no video is in, naming those there are."""
    known = Counter(names)
    if subset != ALL_SUBSETS and not known[subset]:
        counts = ", ".join(f"{name!r} ({count})" for name, count in known.items() if name)
        raise InputError(
            f"{path}: no video of subset {subset!r}; it has {counts or 'none'}"
            f"{'' if counts else f'; give --subset {ALL_SUBSETS}'}"
        )


def _is_action_list(content: Mapping[str, Any]) -> bool:
    return bool(content) and all(
        isinstance(entry, dict) and "annotations" in entry for entry in content.values()
    )


def _read_subsets(path: Path, video_info: Path | None) -> dict[str, str]:
    """Read the subset of each video from video_info_new.csv."""
    table = video_info or path.with_name("video_info_new.csv")
    if video_info is None and not table.exists():
        raise InputError(
            f"{path}: names no subsets: give --video-info video_info_new.csv, "
            f"or --subset {ALL_SUBSETS} to take all its videos"
        )
    try:
        rows = csv.DictReader(io.StringIO(read_utf8(table), newline=""))
        return {row["video"]: row["subset"] for row in rows}
    except KeyError as error:
        raise InputError(f"{table}: no column {error}; it needs 'video' and 'subset'") from None


def _field(path: Path, video_id: str, entry: Any, name: str, kind: type) -> Any:
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, kind):
        raise InputError(f"{path}: video {video_id!r}: no {name!r}")
    return value


def _rows(
    path: Path,
    video_id: str,
    what: str,
    items: Any,
    numbers: Callable[[Any], tuple[float, ...]],
    columns: int,
) -> Floats:
    """Return the numbers of a list of records, naming the first record that is not whole."""
    where = f"video {video_id!r}, {what}"
    if not isinstance(items, list):
        raise InputError(f"{path}: {where}s: a list is needed, not {type(items).__name__}")
    try:
        table = np.array([numbers(item) for item in items], dtype=np.float64)
        whole = table.shape in ((0,), (len(items), columns))
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        row = next(row for row, item in enumerate(items) if not _is_whole(item, numbers, columns))
        form = '{"segment": [start, end]' + (', "score": number}' if columns == 3 else ", …}")
        raise InputError(f"{path}: {where} {row + 1}: not of the form {form}")
    try:
        return check_rows(table, columns, where)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _is_whole(item: Any, numbers: Callable[[Any], tuple[float, ...]], columns: int) -> bool:
    try:
        return np.array(numbers(item), dtype=np.float64).shape == (columns,)
    except (KeyError, TypeError, ValueError):
        return False
