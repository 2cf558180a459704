"""The content of an annotation file, before anything is checked against the videos."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Literal, get_args
from urllib.parse import unquote, urlsplit

from actionspan.annotations.formats.rejections import Rejection, lines_of
from actionspan.annotations.formats.times import (
    OVERSHOOT,
    around,
    times_problem,
    to_number,
    to_seconds,
    unknown_time,
    with_decimal_point,
)
from actionspan.annotations.names import LONGEST_ID, VIDEO_SUFFIXES
from actionspan.errors import InputError, printable

LONGEST_LABEL = 1000  # characters
UNLABELLED = "action"  # the label of an instance that has none
Bout = tuple[float, float, str, str, str]  # start, end, label, subject, modifiers
_LEAST = 1e-9  # seconds, frames, frames a second
Subset = Literal["training", "validation", "testing"]
SUBSETS: tuple[Subset, ...] = get_args(Subset)
_SHORT = {"train": "training", "val": "validation", "valid": "validation", "test": "testing"}
SUBSET_NAMES: dict[str, str] = {**{name: name for name in SUBSETS}, **_SHORT}
FACTS = ("subset", "seconds", "frames", "fps")  # the facts of a video that a record may have
DETAILS = ("subject", "modifiers")  # of an instance, optional
SUFFIXES = VIDEO_SUFFIXES | {".aac", ".flac", ".m4a", ".mp3", ".ogg", ".wav"}
_ADDRESS = re.compile(r"(?:https?|s3|gs)://")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


@dataclass(kw_only=True)
class RawInstance:
    """An annotated segment as the file has it at `row`; its values may be of any type.

    `subject` is who does it, and `modifiers` how, as BORIS writes it: "high|left". `score`, higher
    is better, is a model's. A `point` is meant to have no length; `length` is the seconds that an
    instance that ends where it starts is given around its time; 0: none. One that is `unlabelled`
    in the file has the label `UNLABELLED`.
    """

    row: str = ""
    start: Any
    end: Any
    label: Any
    subject: str = ""
    modifiers: str = ""
    score: float | None = None
    point: bool = False
    length: float = 0.0
    unlabelled: bool = False

    @property
    def details(self) -> dict[str, str]:
        """The known ones of `DETAILS`."""
        return {name: value for name in DETAILS if (value := getattr(self, name))}

    def times(self, seconds: float = 0.0, fps: float = 0.0) -> tuple[float | None, float | None]:
        """Return start and end in seconds, None for one that is not a time.

        Args:
            seconds: The duration of the video, for an instance that lasts to its end; 0: not known.
            fps: Frames a second, for times that count frames; 0: not known.
        """
        return to_seconds(self.start, seconds, fps), to_seconds(self.end, seconds, fps)

    def parsed(self, seconds: float = 0.0, fps: float = 0.0) -> tuple[float, float, str]:
        """Return start, end and label; the arguments are as in `times`.

        Raises:
            ValueError: A value is not allowed; the text states the reason.
        """
        start, end = self.times(seconds, fps)
        if start is None or end is None:
            name, value = ("start", self.start) if start is None else ("end", self.end)
            raise ValueError(f"{name} {unknown_time(value) or _no_time(value)}")
        if start == end and self.length:
            start, end = around(start, self.length, seconds)
        label = str(self.label).strip() if isinstance(self.label, str | int) else ""
        if not label:
            raise ValueError("no label")
        for name, text in {"label": label, **self.details}.items():
            if problem := text_problem(text):
                raise ValueError(f"{name} {problem}")
            if len(text) > LONGEST_LABEL:
                what = f"{len(text)} characters, at most {LONGEST_LABEL}"
                raise ValueError(f"{name} {quoted(text)} is too long: {what}")
        return start, end, label

    def checked(
        self, seconds: float = 0.0, fps: float = 0.0, overshoot: float = OVERSHOOT
    ) -> tuple[float, float, str]:
        """Return what `parsed` does of a segment that lies in its video; see `times_problem`.

        Raises:
            ValueError: A value is not allowed, or the segment is empty or outside.
        """
        start, end, label = self.parsed(seconds, fps)
        if problem := times_problem(start, end, seconds, overshoot):
            raise ValueError(problem)
        return start, end, label


@dataclass(kw_only=True)
class Record:
    """The facts of a video in an annotation file; `row` is where it is first named.

    `subset` is empty, and `seconds`, `frames` and `fps` are 0, if the file lacks them. `media` is
    the name of the video's file; its `path`, and whether it `has_sound`, where somebody has looked.
    """

    file: str = ""
    row: str = ""
    video_id: str
    subset: str = ""
    seconds: float = 0.0
    frames: int = 0
    fps: float = 0.0
    media: str = ""
    path: Path | None = None
    has_sound: bool = False
    instances: list[RawInstance] = field(default_factory=list)

    @property
    def duration(self) -> float:
        """Duration in seconds, also from frames and their rate; 0: not known."""
        return self.seconds or (self.frames / self.fps if self.frames and self.fps else 0.0)

    def parsed(self) -> list[tuple[float, float, str]]:
        """Return start, end and label of each instance.

        Raises:
            ValueError: A value is not allowed.
        """
        return [raw.parsed(self.duration, self.fps) for raw in self.instances]

    def bouts(self) -> list[Bout]:
        """Return what `parsed` does, with subject and modifiers."""
        pairs = zip(self.parsed(), self.instances, strict=True)
        return [(*segment, raw.subject, raw.modifiers) for segment, raw in pairs]

    def add(self, row: str, start: Any, end: Any, label: Any, **more: Any) -> None:
        """Append an instance; `more` are other fields of a `RawInstance`."""
        self.instances.append(RawInstance(row=row, start=start, end=end, label=label, **more))

    def complete(self, other: object) -> None:
        """Take from `other`, which has attributes of these names, the `FACTS` that are missing."""
        for fact in FACTS:
            setattr(self, fact, getattr(self, fact) or getattr(other, fact))


@dataclass(kw_only=True)
class Reading:
    """The records of an annotation file, and its unusable rows.

    A `strict` reading has no rejections: it stops at the first bad row.
    """

    records: list[Record] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    strict: bool = False
    form: str = ""
    _by_id: dict[str, Record] = field(default_factory=dict, repr=False, compare=False)

    def reject(self, file: str, row: str, reason: str, *video_ids: str) -> None:
        """Note a line of bad input, and of which videos an instance may be lost by it.

        Raises:
            InputError: The reading is strict.
        """
        self.rejections.append(Rejection(file, row, reason, video_ids))
        if self.strict:
            raise InputError(self.rejections[-1].line())

    def record_of(self, file: str, row: str, video_id: str) -> Record | None:
        """Return the record of a video, a new one if there is none; None, rejected, if no id."""
        if problem := id_problem(video_id):
            self.reject(file, row, problem)
            return None
        if video_id not in self._by_id:
            self._by_id[video_id] = Record(file=file, row=row, video_id=video_id)
            self.records.append(self._by_id[video_id])
        return self._by_id[video_id]


def record_of_file(file: str, reading: Reading) -> Record | None:
    """Return the record of the video after which a file is named; None, with a rejection."""
    if problem := id_problem(video_id := PurePath(file).stem):
        reading.reject(file, "", f"the file cannot name its video: {problem}")
        return None
    return reading.record_of(file, "1", video_id)


def _no_time(value: object) -> str:
    """Describe a value that is not a time, and a right one."""
    if isinstance(value, str) and (point := with_decimal_point(value.strip())) != value.strip():
        what = f"write {quoted(point)}, or put semicolons between the columns of the table"
        return f"{quoted(value)} is not a time: {what}"
    return f"{quoted(value)} is not a time: seconds, m:ss or h:mm:ss"


def id_problem(video_id: object) -> str:
    """Return why this is not a video id, or an empty text."""
    if not isinstance(video_id, str) or not video_id:
        return "no video id"
    if problem := text_problem(video_id):
        return f"video id {problem}"
    if "/" in video_id or video_id in (".", ".."):
        return f"video id {quoted(video_id)} cannot be a file's stem; ids hold no '/'"
    if (length := len(video_id.encode())) > LONGEST_ID:
        what = "cannot be a file's stem"
        return f"video id {quoted(video_id)} {what}: {length} bytes, at most {LONGEST_ID}"
    return ""


def text_problem(text: str) -> str:
    """Return the fault of a text from a file, or an empty text."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        return f"'{printable(text)}' is not UTF-8 text; save the file as UTF-8"
    if not text.isprintable():
        return f"'{printable(text)}' holds a control character"
    return ""


def subset_name(text: object, strict: bool = False) -> str | None:
    """Return training, validation or testing, or empty text if no subset is given.

    Any other name becomes None, or if `strict` stays as it is.
    """
    if text is None or text == "":
        return ""
    name = SUBSET_NAMES.get(text.strip().lower()) if isinstance(text, str) else None
    return text if strict and name is None and isinstance(text, str) else name


def subset_problem(text: object) -> str:
    """Return the reason for rejecting a subset's name."""
    return f"unknown subset {quoted(text)}; known are {', '.join(SUBSETS)} (train, val, test)"


def positive(value: object) -> float:
    """Return a positive number, 0 for any other value and one too small to divide by."""
    number = to_number(value)
    return number if number is not None and number >= _LEAST else 0.0


def quoted(value: object, longest: int = 60) -> str:
    """Return a value for a message: printable, in quotes, not too long."""
    text = printable(str(value)[: longest + 1])
    return f"'{text if len(text) <= longest else text[:longest] + '…'}'"


def drop_unsound(reading: Reading) -> list[Record]:
    """Reject bad instances, and videos of which every row was rejected.

    Such a video must not become one in which nothing happens. Ends after a video are seen where
    its duration is known.

    Returns:
        The records of these videos, for the other facts in them.

    Raises:
        InputError: The reading is strict.
    """
    for record in reading.records:
        sound = []
        for raw in record.instances:
            try:
                raw.checked(record.duration, record.fps)
            except ValueError as error:
                reading.reject(record.file, raw.row, str(error), record.video_id)
            else:
                sound.append(raw)
        record.instances = sound
    lost = {video_id for bad in reading.rejections for video_id in bad.video_ids}
    emptied = [each for each in reading.records if not each.instances and each.video_id in lost]
    for record in emptied:
        what = f"no row of video {quoted(record.video_id, 100)} is left"
        what += ": what happens in it is unknown"
        reading.reject(record.file, record.row, what, record.video_id)
    reading.records = [
        each for each in reading.records if each.instances or each.video_id not in lost
    ]
    return emptied


def report_left_out(reading: Reading) -> None:
    """Report on standard error the content left out: no table has it."""
    for line in lines_of(reading.rejections):
        print(f"left out {line}", file=sys.stderr)


def video_id_of(media: str) -> str:
    """Return the id of the video that a path or an address names."""
    path = media.strip()
    if _ADDRESS.match(path):
        try:
            path = unquote(urlsplit(path).path)
        except ValueError:  # such as https://[
            return path
    elif path.startswith("file://"):
        path = path.removeprefix("file://").lstrip("/")
    name = (PureWindowsPath if _WINDOWS.match(path) else PurePosixPath)(path).name
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and dot + suffix.lower() in SUFFIXES else name


def media_name(record: Record) -> str:
    """Return the name under which a tool looks for a video: its file's name, if it is known."""
    return record.media or f"{record.video_id}.mp4"
