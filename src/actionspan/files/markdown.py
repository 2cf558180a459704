"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

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
