"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

_RULES = {"l": "---", "r": "---:"}


def markdown_table(
    align: str, titles: Sequence[str], rows: Iterable[Sequence[object]]
) -> list[str]:
    """Return the lines of a table; a bar in a cell is escaped.

    Args:
        align: A letter a column: `l` for text, `r` for numbers.
        titles: Of the columns.
        rows: Their cells, shown as `str` shows them.
    """
    lines = [
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"
        for row in (titles, *rows)
    ]
    return [lines[0], "|" + "|".join(_RULES[side] for side in align) + "|", *lines[1:]]
