"""The exceptions for a user's mistake, the text of messages, and signs of "no memory"."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# the words of torch, OpenCV and C++ in errors of their own
_NO_MEMORY = (
    *("not enough memory", "can't allocate memory", "out of memory", "Insufficient memory"),
    *("Cannot allocate memory", "bad_alloc", "ailed to allocate"),
)

_LONGEST = 60  # characters that are shown of a text
_FEW = 8  # items that are shown of a list


class InputError(Exception):
    """Bad input: the message is one line that names the file, key or row and what would be right.

    The command line prints it without a traceback and exits with status 2.
    """


class JobError(InputError):
    """An error that no single video is to blame for, such as a full disk or a damaged result."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of a file before the messages of the block that do not have it."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from None


def brief(value: Any) -> str:
    """Return a value of any origin as a message shows it: on one line, and not all of a long one.

    What lists and dictionaries hold is not looked at, for it may be endless.
    """
    if isinstance(value, list | tuple | dict):
        simple = len(value) <= _FEW and not isinstance(value, dict)
        if simple and all(isinstance(item, str | float | int) for item in value):
            return f"[{', '.join(map(brief, value))}]"
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return f"a number of {value.bit_length()} bits"
    if not isinstance(value, str | bytes | float | int | Path | None):
        return f"a {type(value).__name__}"
    text = printable(repr(value[:_LONGEST]) if isinstance(value, str | bytes) else str(value))
    cut = isinstance(value, str | bytes) and len(value) > _LONGEST
    return text[: 2 * _LONGEST] + "…" * (cut or len(text) > 2 * _LONGEST)


def printable(text: str) -> str:
    """Return `text` on one line: control characters and bytes that were not UTF-8 are escaped."""
    if text.isprintable():  # nearly all, of the names of many thousand files
        return text

    def escaped(character: str) -> str:
        if "\udc80" <= character <= "\udcff":  # a byte, as `surrogateescape` decodes it
            return f"\\x{ord(character) - 0xDC00:02x}"
        return character if character.isprintable() else ascii(character)[1:-1]

    return "".join(escaped(character) for character in text)


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as `1 video`, `2 videos`, `1,000 classes`."""
    if number != 1:
        noun += "es" * noun.endswith("s") or "s"
    return f"{number:,} {noun}"


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error means too little memory, whatever its type."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, MemoryError):
        return True
    # not text that may be of a file
    trusted = type(error).__module__.split(".")[0] in ("builtins", "torch", "cv2")
    return trusted and any(text in str(error) for text in _NO_MEMORY)
