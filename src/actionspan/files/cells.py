"""Cells of CSV and TSV files: none is a formula where a spreadsheet opens the file.

A cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return, and is no number, is written
with an apostrophe before it, by which spreadsheets know text. So is one in which apostrophes stand
before these, so that `read_cell` gives back the exact text.
"""

import re
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_WRITTEN = re.compile(r"''*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)


def safe_cell(value: Any) -> Any:
    """Return a value as it is written: a text that could be a formula gets an apostrophe."""
    text = str(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return value


def read_cell(text: str) -> str:
    """Return the text of which `safe_cell` made a cell."""
    return text[1:] if _WRITTEN.match(text) else text
