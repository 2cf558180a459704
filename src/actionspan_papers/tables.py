"""The files of a table: TSV for programs, Markdown for people, and the figure of it."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from actionspan.files.storage import write_text, write_tsv
from actionspan.files.text import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Spread(Protocol):
    """A value with its interval, such as `papers.estimates.Estimate`."""

    def cells(self) -> list[str]:
        """Return value, low and high as they are written."""


Row = Mapping[str, str | Spread]
"""The cells of a row by column; the first row's type says which columns have intervals."""


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
        rows: A value with an interval becomes three columns of the TSV: X, X_low and X_high.
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
    """Return the columns and the rows of the TSV; what is unknown is empty."""
    ends = ("", "_low", "_high")
    columns = [
        f"{name}{end}"
        for name, cell in rows[0].items()
        for end in (ends[:1] if isinstance(cell, str) else ends)
    ]
    split = [
        [[cell] if isinstance(cell, str) else cell.cells() for cell in row.values()] for row in rows
    ]
    return columns, [list(chain.from_iterable(cells)) for cells in split]


def write_figures(
    arguments: argparse.Namespace,
    draw: "Callable[[Figure], None]",
    size: tuple[float, float] = (6.2, 3.7),
) -> None:
    """Draw a figure of a size in inches into each file of `add_outputs`, once for each file."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from actionspan.files.figures import house_style, save_figure

    for path in arguments.out_figures:
        with house_style():
            layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
            figure = Figure(figsize=size, layout=layout)
            draw(figure)
            save_figure(figure, path)
