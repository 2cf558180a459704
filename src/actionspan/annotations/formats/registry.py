"""The formats by name, and the function that reads every annotation file."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from actionspan.annotations.formats import (
    activitynet,
    anet_anno_action,
    boris,
    boris_project,
    chapters,
    corrections,
    cvat,
    elan,
    label_studio,
    proposals,
    table,
    thumos14,
    via3,
)
from actionspan.annotations.formats.records import Reading, Record, quoted
from actionspan.annotations.formats.rows import first_line
from actionspan.annotations.formats.times import to_number
from actionspan.annotations.names import ANNOTATION_SUFFIXES
from actionspan.errors import InputError
from actionspan.plugins import load, plugins
from actionspan.storage.inputs import keep


class Form(Protocol):
    """The module of a format.

    In a folder its files are found by `ANNOTATION_SUFFIXES`; `SUFFIXES_READ` names more.
    """

    def sniff(self, text: str) -> bool:
        """Return whether a file with this content looks like the format."""

    def read(self, file: str, text: str, strict: bool = False) -> Reading:
        """Read the content of a file; see `read_annotation_file` for `strict` and errors."""


class _WritableForm(Form, Protocol):
    """The module of a format that we write, too; a file for each video has the `SUFFIX`."""

    def write(self, records: Sequence[Record]) -> str:
        """Return the content of a file with these sound records."""


_OURS: dict[str, Form] = {  # in the order in which they are tried
    "activitynet": activitynet,
    "via3": via3,
    "label_studio": label_studio,
    "boris_project": boris_project,
    "proposals": proposals,
    "elan": elan,
    "cvat": cvat,
    "thumos14": thumos14,
    "boris": boris,
    "corrections": corrections,
    "chapters": chapters,
}
# after the forms of plug-ins: any JSON looks like the first, any text like the second
_LAST: dict[str, Form] = {"anet_anno_action": anet_anno_action, "table": table}
_THEIRS = {name: load("forms", name) for name in plugins("forms", (*_OURS, *_LAST))}
FORMATS: dict[str, Form] = {**_OURS, **_THEIRS, **_LAST}
WRITABLE: dict[str, _WritableForm] = {
    name: cast(_WritableForm, form) for name, form in FORMATS.items() if hasattr(form, "write")
}
FORMAT_NAMES = ("auto", *FORMATS)
_UNSTREAMED = (KeyError, ValueError, OSError, RecursionError)

if TYPE_CHECKING:
    AnnotationFormat = str
else:  # a flag's choices and the schema's values are made from the type
    AnnotationFormat = Literal[FORMAT_NAMES]


def read_annotation_file(
    path: Path,
    form: AnnotationFormat = "auto",
    keep_ambiguous: bool = True,
    strict: bool = False,
    points: float = 0.0,
    not_done: bool | None = None,
) -> Reading:
    """Read an annotation file, or a folder of them.

    Args:
        path: The file; or a folder, of THUMOS14's `<Class>_val.txt` or of files of other formats,
            such as an .eaf for each video.
        form: Its format, by name; `auto` takes the first format that its content looks like.
        keep_ambiguous: Whether instances of THUMOS14's class "Ambiguous" count.
        strict: Whether a bad row is an error, as scoring wants, or a rejection. A strict reading
            takes subsets of any name, and from JSON any id.
        points: The length in seconds of an instance that ends where it starts; 0: none.
        not_done: Whether corrections of `review` are taken that are saved but not done. Else a line
            names their videos; None: the command has no flag that takes them.

    Raises:
        InputError: The file is missing, empty, not text, not JSON, or of no known format; or, if
            `strict`, a row is bad; or `points` is not a length.
    """
    if not 0 <= points < math.inf:
        raise InputError(f"--points {points}: 0 seconds or more")
    read = _read_folder if path.is_dir() else _read_file
    reading = read(path, form, keep_ambiguous, strict)
    if reading.form == "corrections" and path.is_file():
        corrections.add_unfinished(reading, path, not_done)
    for raw in chain.from_iterable(record.instances for record in reading.records):
        raw.length = points
    return reading


def _read_file(path: Path, form: str, keep_ambiguous: bool, strict: bool) -> Reading:
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    if form == "auto":
        form = sniffed(text)
    reading = FORMATS[form].read(str(path), text, strict)
    if form == "thumos14" and not keep_ambiguous:
        thumos14.drop_ambiguous(reading)
    reading.form = form
    _keep_first(reading)
    return reading


def sniffed(text: str) -> str:
    """Return the name of the first format that a text looks like; any text looks like one."""
    return next(name for name, module in FORMATS.items() if module.sniff(text))


def folder_suffixes() -> tuple[str, ...]:
    """Return the suffixes of annotation files in a folder, also those that plug-ins name."""
    theirs = (
        suffix
        for form in FORMATS.values()
        for suffix in (getattr(form, "SUFFIX", ""), *getattr(form, "SUFFIXES_READ", ()))
        if suffix
    )
    return tuple(dict.fromkeys([*ANNOTATION_SUFFIXES, *theirs]))


def folder_files(folder: Path) -> list[Path]:
    """Return the annotation files of a folder, in order; hidden ones are left out."""
    suffixes = folder_suffixes()
    return [
        file
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in suffixes and not file.name.startswith(".")
    ]


def _read_folder(path: Path, form: str, keep_ambiguous: bool, strict: bool) -> Reading:
    files = {file: read_text(file) for file in folder_files(path)}
    if not files:
        known = ", ".join(folder_suffixes())
        raise InputError(f"{path}: no annotation files in this folder ({known})")
    keep(files)
    # a line `video start end` is of no format that has a header or a file for each video
    texts = {file: text for file, text in files.items() if file.suffix.lower() == ".txt"}
    if form == "thumos14" or (form == "auto" and any(map(_is_thumos14, texts.values()))):
        reading = thumos14.read_folder(texts, strict)
        if not keep_ambiguous:
            thumos14.drop_ambiguous(reading)
        reading.form = "thumos14"
        return reading
    reading = Reading(strict=strict)
    for file, text in files.items():
        if not text.strip():
            reading.reject(str(file), "", "the file is empty")
            continue
        part = _read_file(file, form, keep_ambiguous, strict)
        reading.records += part.records
        reading.rejections += part.rejections
        reading.form = part.form
    _keep_first(reading)
    return reading


def _is_thumos14(text: str) -> bool:
    """Return whether the first line is `video start end`, and of no other format."""
    words = first_line(text).split()
    is_number = [to_number(word) is not None for word in words]
    return is_number == [False, True, True] and sniffed(text) == "table"


def _keep_first(reading: Reading) -> None:
    """Reject the records of videos that are there already: two coders may differ."""
    first: dict[str, Record] = {}
    for record in reading.records:
        known = first.setdefault(record.video_id, record)
        if known is not record:
            place = ", row ".join(filter(None, (known.file, known.row)))
            what = f"a second time {quoted(record.video_id)}; {place} counts"
            reading.reject(record.file, record.row, what)
    reading.records = list(first.values())


def stream_annotation_file(path: Path) -> tuple[str, Iterator[Record]]:
    """Return the format of an annotation file and its videos, read strictly, one by one.

    Of ActivityNet's format there is one in memory at a time; of other formats all are read here.

    Raises:
        InputError: See `read_annotation_file`; also when a video is asked for.
    """
    records = _streamed(path)
    try:
        first = list(islice(records, 1))
    except _UNSTREAMED:
        reading = read_annotation_file(path, strict=True)
        return reading.form, iter(reading.records)
    return "activitynet", chain(first, records)


def _streamed(path: Path) -> Iterator[Record]:
    """Yield the videos of a file of ActivityNet's format; raise one of `_UNSTREAMED` for others."""
    count = 0
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            for record in activitynet.stream(str(path), file):
                count += 1
                yield record
    except _UNSTREAMED:
        if not count:
            raise
        # names the line; or it is another key that is there twice, of which the first counts
        yield from read_annotation_file(path, strict=True).records[count:]


def read_text(path: Path) -> str:
    """Read text as UTF-8, or UTF-16 with a byte order mark.

    Bytes that are not UTF-8 become lone surrogates, so that only their rows are lost.

    Raises:
        InputError: The file is missing, or is binary.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: broken UTF-16 (byte {error.start}); use UTF-8") from None
    if b"\0" in content:
        raise InputError(f"{path}: not text, or UTF-16 without a byte order mark; save it as UTF-8")
    return content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
