"""THUMOS14: both formats of its CSV, and its folder of text files.

Its validation set, which everyone trains on, becomes our training subset, and its test set our
validation subset; the video's id names it, and other ids have no subset. "Ambiguous" marks
actions that annotators were not sure of. They are part of the ground truth in the published
proposal scores, so they are kept by default.

We write the format of thumos14_test_groundtruth.csv. It holds duration, frames, frame rate and
segments; a class of THUMOS14 by its number, any other by its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from actionspan.annotations.formats.records import Reading, Record
from actionspan.annotations.formats.rows import Line, add_lines, csv_text, first_line, read_lines
from actionspan.errors import InputError

CLASSES = (
    "BaseballPitch BasketballDunk Billiards CleanAndJerk CliffDiving CricketBowling CricketShot "
    "Diving FrisbeeCatch GolfSwing HammerThrow HighJump JavelinThrow LongJump PoleVault Shotput "
    "SoccerPenalty TennisSwing ThrowDiscus VolleyballSpiking"
).split()
_AMBIGUOUS = "Ambiguous"
NUMBERS = {"-1": _AMBIGUOUS} | {str(number): name for number, name in enumerate(CLASSES)}
HEADER = "video-name,t-init,t-end,f-init,f-end,video-duration,frame-rate,video-frames,label-idx"


def sniff(text: str) -> bool:
    """Return whether the first line names the columns of a CSV format."""
    header = first_line(text).lower()
    return "startframe" in header or "label-idx" in header


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read a CSV format."""
    reading = Reading(strict=strict)
    lines = read_lines(file, text, ("video", "start", "end", "label"), reading)
    add_lines(file, (_named(line) for line in lines), reading)
    return reading


def read_folder(files: Mapping[Path, str], strict: bool = False) -> Reading:
    """Read THUMOS14's own text files, `<Class>_val.txt`, with lines `video start end`."""
    reading = Reading(strict=strict)
    for path, text in files.items():
        add_lines(str(path), _text_lines(path, text, reading), reading)
    return reading


def drop_ambiguous(reading: Reading) -> None:
    """Leave out the instances of the class "Ambiguous", and the videos that have no others."""
    kept = []
    for record in reading.records:
        sure = [raw for raw in record.instances if raw.label != _AMBIGUOUS]
        if sure or not record.instances:
            if len(sure) < len(record.instances) and record.row == record.instances[0].row:
                record.row = sure[0].row  # its first row may be left out
            record.instances = sure
            kept.append(record)
    reading.records = kept


def write(records: Sequence[Record]) -> str:
    """Return the records as a table of ground truth.

    Raises:
        InputError: A label is a number that means a class of THUMOS14.
    """
    return csv_text(HEADER.split(","), _rows(records))


def _rows(records: Sequence[Record]) -> Iterator[list[Any]]:
    numbers = {name: number for number, name in NUMBERS.items()}
    for record in records:
        facts = [record.seconds or "", record.fps or "", record.frames or ""]
        if not record.instances:
            yield [record.video_id, "", "", "", "", *facts, ""]
        for start, end, label in record.parsed():
            if label in NUMBERS:
                raise InputError(
                    f"video {record.video_id!r}: label {label!r} would be THUMOS14's class"
                    f" {NUMBERS[label]}; give it another name or choose another format"
                )
            frames = [round(time * record.fps) if record.fps else "" for time in (start, end)]
            yield [record.video_id, start, end, *frames, *facts, numbers.get(label, label)]


def _named(line: Line) -> Line:
    """Give a line the subset of its video, by the id, and the name of its class."""
    video_id, label = line.values["video"], line.values["label"]
    subset = "training" if video_id.startswith("video_validation_") else ""
    line.values["subset"] = "validation" if video_id.startswith("video_test_") else subset
    line.values["label"] = NUMBERS.get(label, label)
    return line


def _text_lines(path: Path, text: str, reading: Reading) -> Iterator[Line]:
    """Yield the lines of a text file; it has the name of the class."""
    label = path.stem.rsplit("_", 1)[0]
    for number, content in enumerate(text.split("\n"), start=1):
        words = content.split()
        if len(words) == 3:
            values = dict(zip(("video", "start", "end"), words, strict=True))
            yield _named(Line(row=str(number), values=values | {"label": label}))
        elif words:
            reading.reject(str(path), str(number), "'video start end' is wanted")
