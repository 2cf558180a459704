"""Our own proposals and events, .csv or .json: each row an instance, whatever its score. Read only.

The .json is ActivityNet's format of results. The label is the row's, or `action` where there is
none.
"""

from collections.abc import Iterator

from actionspan.annotations.formats import rows
from actionspan.annotations.formats.parsing import items, parse_json, peek_json
from actionspan.annotations.formats.records import FACTS, UNLABELLED, Reading
from actionspan.annotations.formats.rows import Line
from actionspan.annotations.formats.times import to_number
from actionspan.errors import InputError, printable

_COLUMNS = {
    **{name: rows.COLUMNS[name] for name in FACTS},
    **{"video": ("video_id",), "label": ("label",), "score": ("score",)},
    **{"start": ("start_seconds",), "end": ("end_seconds",)},
}
_HEADER = {"video_id", "rank", "start_seconds", "end_seconds", "score"}


def sniff(text: str) -> bool:
    """Return whether the text is a JSON object of results, or has the header of such a table."""
    if not text.lstrip().startswith("{"):
        return set(rows.header_cells(rows.first_line(text))) >= _HEADER
    content = peek_json(text) if '"results"' in text else None
    results = content.get("results") if isinstance(content, dict) else None
    return isinstance(results, dict) and all(isinstance(each, list) for each in results.values())


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the table, or the object of results.

    Raises:
        InputError: It is JSON of another format, or lacks a column.
    """
    reading = Reading(strict=strict)
    if text.lstrip().startswith("{"):
        _read_results(file, text, reading)
    else:
        lines = rows.read_lines(file, text, ("video", "start", "end"), reading, _COLUMNS)
        rows.add_lines(file, labelled(lines), reading)
    return reading


def labelled(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield lines; each line of an instance has a label."""
    for line in lines:
        if (line.values["start"] or line.values["end"]) and not line.values.get("label"):
            line.values |= {"label": UNLABELLED, "unlabelled": "yes"}
        yield line


def _read_results(file: str, text: str, reading: Reading) -> None:
    content = parse_json(file, text)
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, dict):
        raise InputError(f'{file}: no object "results" as in our proposals.json and events.json')
    for video_id, found in results.items():
        for number, row in enumerate(items(found)):
            where = f"results.{printable(video_id)}[{number}]"
            record = reading.record_of(file, where, video_id)
            segment = items(row.get("segment")) if isinstance(row, dict) else []
            if record is None:
                break  # the id is wrong, in all its rows
            if len(segment) == 2:
                label, score = row.get("label") or UNLABELLED, to_number(row.get("score"))
                bare = not row.get("label")
                record.add(where, segment[0], segment[1], label, score=score, unlabelled=bare)
            else:
                reading.reject(file, where, "no segment [start, end]", video_id)
