"""BORIS' exports of events as CSV or TSV: tabular and aggregated.

The aggregated export has a row for each event, with start and stop; the tabular one has a row for
the start and one for the stop of a state event, which belong together where subject, behaviour and
modifiers are the same, and may have lines about the observation before its table. Point events end
where they start. The label is the behaviour. We write the aggregated format.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from actionspan.annotations.formats import rows
from actionspan.annotations.formats.records import Reading, Record, media_name, quoted
from actionspan.annotations.formats.rows import Line

HEADER = (
    "Observation id,Observation date,Description,Observation type,Source,Time offset (s),"
    "Coding duration,Media duration (s),FPS (frame/s),Subject,"
    "Observation duration by subject by observation,Behavior,Behavioral category,Behavior type,"
    "Start (s),Stop (s),Duration (s),Media file name,Image index start,Image index stop,"
    "Image file path start,Image file path stop,Comment start,Comment stop"
).split(",")
_COLUMNS = {
    "video": ("media file name", "media file path", "media file"),
    "observation": ("observation id",),
    "label": ("behavior",),
    "kind": ("behavior type", "status"),
    "time": ("time",),
    "start": ("start (s)",),
    "end": ("stop (s)",),
    "subject": ("subject",),
    "modifiers": ("modifiers", "modifier #1", "modifier 1"),
    **{f"modifier {n}": (f"modifier #{n}", f"modifier {n}") for n in range(2, 10)},
    "seconds": ("media duration (s)", "total length"),
    "fps": ("fps (frame/s)", "fps"),
}
_MODIFIERS = ("modifiers", *(name for name in _COLUMNS if name.startswith("modifier ")))
_TOGETHER = ("observation", "video", "subject", "label", "modifiers")  # of a start and its stop
_NOBODY = "No focal subject"
_SEARCHED = 100  # lines before the table


def sniff(text: str) -> bool:
    """Return whether one of the first lines is the header of an export."""
    return _header(text) is not None


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read an export of either kind."""
    reading = Reading(strict=strict)
    place = _header(text)
    before, aggregated = place if place else (0, True)
    needed = ("video", "label", "start", "end") if aggregated else ("video", "label", "time")
    lines = rows.read_lines(file, text, needed, reading, _COLUMNS, before)
    lines = _detailed(_of_one_medium(file, lines, reading))
    rows.add_lines(file, _states(lines) if aggregated else _paired(file, lines, reading), reading)
    return reading


def write(records: Sequence[Record]) -> str:
    """Return the records as aggregated events: each video is an observation."""
    events: list[dict[str, Any]] = []
    most = 0  # modifiers of an event
    for record in records:
        facts = {
            **{"Observation id": record.video_id, "Observation type": "Media file"},
            **{"Media duration (s)": record.seconds or "", "FPS (frame/s)": record.fps or ""},
            **{"Subject": _NOBODY, "Media file name": media_name(record)},
        }
        for start, end, label, subject, modifiers in record.bouts():
            times = {"Start (s)": start, "Stop (s)": end, "Duration (s)": end - start}
            parts = modifiers.split("|") if modifiers else []
            most = max(most, len(parts))
            own = {f"Modifier #{number}": part for number, part in enumerate(parts, start=1)}
            own |= {"Subject": subject or _NOBODY, "Behavior": label, "Behavior type": "STATE"}
            events.append(facts | own | times)
        if not record.instances:
            events.append(facts)
    header, place = [*HEADER], HEADER.index("Behavior type")
    header[place:place] = [f"Modifier #{number + 1}" for number in range(most)]
    return rows.csv_text(header, ([event.get(name, "") for name in header] for event in events))


def _header(text: str) -> tuple[int, bool] | None:
    """Return how many lines precede the header, and whether events are aggregated."""
    for number, line in enumerate(islice(rows.split_lines(text), _SEARCHED + 1)):
        cells = set(rows.header_cells(line))
        if "behavior" in cells and cells.intersection(_COLUMNS["video"]):
            if {"start (s)", "stop (s)"} <= cells:
                return number, True
            if "time" in cells and cells.intersection(_COLUMNS["kind"]):
                return number, False
    return None


def _of_one_medium(file: str, lines: Iterator[Line], reading: Reading) -> Iterator[Line]:
    """Yield the lines of the first medium of each observation, from which its times count."""
    first: dict[str, str] = {}
    for line in lines:
        media, observation = line.values["video"], line.values.get("observation", "")
        if observation and first.setdefault(observation, media) != media:
            what = f"observation {quoted(observation)} plays several media files one after another"
            what += "; its times count from the first"
            reading.reject(file, line.row, what, media)
        else:
            yield line


def _detailed(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield lines with all modifiers in one value, and without a subject that is nobody."""
    for line in lines:
        subject = line.values.get("subject", "")
        modifiers = "|".join(line.values.get(name, "") for name in _MODIFIERS).rstrip("|")
        line.values |= {"subject": "" if subject == _NOBODY else subject, "modifiers": modifiers}
        yield line


def _states(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        if line.values.get("kind", "").upper() == "POINT":
            line.values |= {"end": line.values["start"], "point": "yes"}
        yield line


def _paired(file: str, lines: Iterator[Line], reading: Reading) -> Iterator[Line]:
    """Yield an event for each start and stop of a tabular export."""
    begun: dict[tuple[str, ...], Line] = {}
    for line in lines:
        kind = line.values.get("kind", "").upper()
        key = tuple(line.values.get(name, "") for name in _TOGETHER)
        if kind == "POINT":
            time = line.values["time"]
            times = {"start": time, "end": time, "point": "yes"}
            yield Line(row=line.row, values=line.values | times)
        elif kind == "START" and key not in begun:
            begun[key] = line
        elif kind == "STOP" and key in begun:
            start = begun.pop(key)
            times = {"start": start.values["time"], "end": line.values["time"]}
            yield Line(row=start.row, values=start.values | times)
        else:
            label = quoted(line.values["label"])
            known = {
                "START": f"a second START of {label}",
                "STOP": f"a STOP without a START of {label}",
            }
            what = known.get(kind, f"{quoted(kind)} is not START, STOP or POINT")
            reading.reject(file, line.row, what, line.values["video"])
    for line in begun.values():
        what = f"a START of {quoted(line.values['label'])} without a STOP"
        reading.reject(file, line.row, what, line.values["video"])
