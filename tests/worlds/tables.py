"""Tables of comma-separated values, as other programs read them."""

import csv
from pathlib import Path


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table by the names of its columns."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
