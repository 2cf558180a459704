"""What an annotation file says, before anything is checked against the videos."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from actionspan.dataset.rejections import Rejection
from actionspan.dataset.tables import SUBSETS
from actionspan.errors import printable

SUBSET_NAMES = {name: name for name in SUBSETS} | {
    "train": "training",
    "val": "validation",
    "valid": "validation",
    "test": "testing",
}


@dataclass(kw_only=True)
class RawInstance:
    """One annotated segment as it stands at `row`; its values may be of any type."""

    row: str
    start: Any
    end: Any
    label: Any


@dataclass(kw_only=True)
class Record:
    """What one annotation file says of one video; `row` is where it is first named.

    `subset` is empty and `seconds`, `frames` and `fps` are 0 where the file does not say.
    """

    file: str
    row: str
    video_id: str
    subset: str = ""
    seconds: float = 0.0
    frames: int = 0
    fps: float = 0.0
    instances: list[RawInstance] = field(default_factory=list)


@dataclass(kw_only=True)
class Reading:
    """The records of an annotation file and what of it was not usable."""

    records: list[Record] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)

    def reject(self, file: str, row: str, reason: str) -> None:
        """Note one line of bad input."""
        self.rejections.append(Rejection(file, row, reason))


def id_problem(video_id: object) -> str:
    """Return why this is no video id, or an empty text."""
    if not isinstance(video_id, str) or not video_id:
        return "no video id"
    if problem := text_problem(video_id):
        return f"video id {problem}"
    if "/" in video_id or video_id == ".":
        return f"video id '{video_id}' cannot be a file's stem; ids hold no '/'"
    return ""


def text_problem(text: str) -> str:
    """Return what is wrong with a text from a file, or an empty text."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        return f"'{printable(text)}' is not UTF-8 text; save the file as UTF-8"
    if not text.isprintable():
        return f"'{printable(text)}' holds a control character"
    return ""


def canonical_subset(text: object) -> str | None:
    """Return training, validation or testing; empty text for none; None for an unknown name."""
    if text is None or text == "":
        return ""
    return SUBSET_NAMES.get(text.strip().lower()) if isinstance(text, str) else None


def subset_problem(text: object) -> str:
    """Return the reason for rejecting a subset's name."""
    return f"unknown subset {quoted(text)}; known are {', '.join(SUBSETS)} (train, val, test)"


def to_number(value: object) -> float | None:
    """Return a finite number given as a number or as text, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and "_" in value:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e12 else None  # NaN compares false


def positive(value: object) -> float:
    """Return a positive number, 0 where the value is none."""
    number = to_number(value)
    return number if number is not None and number > 0 else 0.0


def quoted(value: object, longest: int = 60) -> str:
    """Return a value for a message: printable, in quotes, not too long."""
    text = printable(str(value))
    return f"'{text if len(text) <= longest else text[:longest] + '…'}'"


def matching_forms(video_id: str, suffixes: Iterable[str]) -> list[str]:
    """Return the forms in which an annotation's video id may equal a file's stem, best first.

    Annotations may leave out or add ActivityNet's `v_`, may name the whole file, and may be
    composed differently (Unicode NFC) from names that macOS wrote.
    """
    forms = [video_id]
    lower = video_id.lower()
    forms += [video_id[: -len(suffix)] for suffix in suffixes if lower.endswith(suffix)]
    forms = [unicodedata.normalize("NFC", form) for form in forms]
    return forms + [form[2:] if form.startswith("v_") else f"v_{form}" for form in forms]
