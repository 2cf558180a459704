"""Text, with the standard library only, as the Snakefile needs it too.

UTF-8 files; cells of CSV and TSV files that no spreadsheet takes for formulas; tables in Markdown;
names of files for any text.
"""

import errno
import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from actionspan.errors import InputError

NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is larger than a file may be here (ulimit -f)",
}
"""Text of the message for a system error where a file lacks room."""


def read_utf8(path: Path) -> str:
    """Return the text of a UTF-8 file, without its byte order mark, lines ended by newlines.

    Raises:
        InputError: The file is missing, cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_WRITTEN = re.compile(r"''*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)


def safe_cell(value: Any) -> Any:
    """Return a value as it is written: a text that could be a formula gets an apostrophe.

    That is a text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return and not a number;
    spreadsheets know text by the apostrophe. So does one in which apostrophes stand before these,
    so that `read_cell` gives back the exact text.
    """
    text = str(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return value


def read_cell(text: str) -> str:
    """Return the text of which `safe_cell` made a cell."""
    return text[1:] if _WRITTEN.match(text) else text


_RULES = {"l": "---", "r": "---:"}


def markdown_table(
    align: str, titles: Sequence[str], rows: Iterable[Sequence[object]]
) -> list[str]:
    """Return the lines of a table; a bar in a cell is escaped.

    `align` has a letter for each column: `l` for text, `r` for numbers.
    """
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in (titles, *rows)]
    header, *lines = [f"| {' | '.join(row)} |" for row in cells]
    return [header, f"|{'|'.join(_RULES[side] for side in align)}|", *lines]


_VARIABLE = re.compile(r"<[a-z][a-z0-9_]*>")


def file_name(text: str) -> str:
    """Return a short name that is safe in shells and file systems, and different for each text."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", text):
        return text
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:80].lstrip(".-")
    return f"{safe}~{hash_of(text).hex()[:12]}"


def wildcard_fault(path: str, *, by_function: bool = False) -> str:
    """Return the fault of a path that Snakemake would fill in, as it cannot be escaped; else empty.

    Args:
        path: A path that a rule has.
        by_function: Whether a function gives it, where braces are not wildcards.
    """
    if not by_function and ("{" in path or "}" in path):
        return "Snakemake takes braces for a wildcard"
    variable = _VARIABLE.search(path)
    return f"Snakemake takes {variable[0]} for a path variable" if variable else ""


def hash_of(text: str) -> bytes:
    """Return the SHA-256 of a text, such as a file's name, that may hold undecodable bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
