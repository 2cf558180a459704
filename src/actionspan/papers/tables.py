"""The files of a table: TSV for programs, Markdown under a caption for people."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from actionspan.files.markdown import markdown_table
from actionspan.files.storage import write_text, write_tsv
from actionspan.papers.estimates import Estimate

Row = Mapping[str, str | Estimate]
"""The cells of a row by column; the first row's type says which columns hold estimates."""


def add_outputs(parser: argparse.ArgumentParser, *, figure: bool = False) -> None:
    """Add the flags that name the files a step writes."""
    parser.add_argument("--out-tsv", type=Path, required=True, help="table to write")
    parser.add_argument("--out-markdown", type=Path, required=True, help="the same to read")
    if figure:
        add_files(parser, "--out-figures", ".svg or .png")


def add_files(parser: argparse.ArgumentParser, flag: str, form: str) -> None:
    """Add the flag of a list of files, whose paths have this form."""
    parser.add_argument(flag, type=Path, nargs="+", required=True, help=form)


def write_table(
    arguments: argparse.Namespace,
    rows: Sequence[Row],
    caption: Iterable[str],
    align: str,
    titles: Mapping[str, str],
    shown: Sequence[Row] = (),
) -> None:
    """Write rows as TSV, and some of their columns in Markdown, to the files of `add_outputs`.

    Args:
        arguments: The parsed ones.
        rows: An estimate becomes three columns of the TSV: X, X_low and X_high.
        caption: Lines above the table in Markdown.
        align: As for `markdown_table`.
        titles: The columns of the Markdown by name, and their titles there.
        shown: The rows of the Markdown where they are not those of the TSV.
    """
    write_tsv(arguments.out_tsv, *table_cells(rows))
    cells = [[row[column] for column in titles] for row in shown or rows]
    table = markdown_table(align, list(titles.values()), cells)
    write_text(arguments.out_markdown, "\n".join([*caption, "", *table, ""]))


def table_cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and the rows of the TSV; what is not known is empty."""
    ends = ("", "_low", "_high")
    columns = [
        f"{name}{end}"
        for name, cell in rows[0].items()
        for end in (ends if isinstance(cell, Estimate) else ends[:1])
    ]
    split = [
        [cell.cells() if isinstance(cell, Estimate) else [cell] for cell in row.values()]
        for row in rows
    ]
    return columns, [list(chain.from_iterable(cells)) for cells in split]
