"""The runner of the papers' experiments: a step's flags, its rows, their table and its figures."""

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.lazy import needed
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.text import markdown_table
from actionspan.storage.writing import read_tsv, write_text, write_tsv
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.kinds import DataFrame

Cell = str | int | float | Estimate
"""A number that is not known is NaN, and empty in a table."""
Row = Mapping[str, Cell]

NUMBER = ".6g"
"""How numbers are written where their column has no form of its own."""
_ENDS = ("", "_low", "_high")


def files(form: str) -> dict[str, Any]:
    """Return the options of a flag that takes a list of files with paths of this form."""
    return {"type": Path, "nargs": "+", "required": True, "help": form}


def titled(text: str) -> dict[str, str]:
    """Return the titles of columns of a text "column: title; column"; a name may be its title."""
    pairs = (column.partition(":") for column in text.split(";"))
    return {name.strip(): title.strip() or name.strip() for name, _, title in pairs}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table for people: lines above it, its columns with their titles, and its rows."""

    caption: Sequence[str]
    titles: Mapping[str, str]
    rows: Sequence[Row] | None = None
    """By default the rows of the TSV."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """Formats of numbers that differ from the TSV's."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Replacements for words of the TSV."""
    align: str = ""
    """As for `markdown_table`; by default numbers are on the right."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A step of a paper: its inputs, computation and outputs; its module takes both methods.

    `rows`, `table` and `figure` get the settings as their last arguments, and before them what
    `read` returns: by default the parsed flags. Tables and figures get the rows of the TSV as a
    data frame, so that all three agree; an `Estimate` is the columns X, X_low and X_high there.
    """

    rows: Callable[..., Iterable[Row]]
    table: Callable[..., Table]
    figure: Callable[..., None] | None = None
    """Draws into its first argument."""
    size: tuple[float, float] = (6.2, 3.7)
    """Of the figure, in inches."""
    inputs: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    """Flags by name: the help of a required path, or the options of another."""
    settings: tuple[type[Any], ...] = ()
    planned: tuple[str, ...] = ()
    """Fields of the settings that are not flags: they choose the runs."""
    read: Callable[..., Any] | None = None
    """Reads the input of the rows, given the flags and settings."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """How numbers of a column are written; an empty form keeps all digits."""
    repeatable: bool = False
    """Whether torch computes the rows: on one thread, the same bits each time."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the step's flags."""
        for name, given in self.inputs.items():
            options = {"type": Path, "required": True, "help": given}
            parser.add_argument(f"--{name}", **(options if isinstance(given, str) else given))
        parser.add_argument("--out-tsv", type=Path, required=True, help="table to write")
        parser.add_argument("--out-markdown", type=Path, required=True, help="the same to read")
        if self.figure is not None:
            parser.add_argument("--out-figures", **files(".svg or .png"))
        for settings in self.settings:
            add_settings(parser, settings, without=self.planned)

    def run(self, arguments: argparse.Namespace) -> None:
        """Write the TSV, the Markdown and the figures."""
        settings = [
            from_arguments(
                each, arguments, **{name: getattr(each(), name) for name in self.planned}
            )
            for each in self.settings
        ]
        with self._computing():
            given = self.read(arguments, *settings) if self.read else arguments
            rows = list(self.rows(given, *settings))
        write_tsv(arguments.out_tsv, *table_cells(rows, self.forms))
        frame = read_frame(arguments.out_tsv)
        table = self.table(frame, given, *settings)
        write_text(arguments.out_markdown, self._markdown(table, rows))
        if self.figure is not None:
            for path in arguments.out_figures:
                self._draw(self.figure, path, frame, given, *settings)

    def _computing(self) -> AbstractContextManager[None]:
        if not self.repeatable:
            return nullcontext()
        from actionspan.jobs.determinism import deterministic

        return deterministic(threads=1)

    def _draw(self, draw: Callable[..., None], path: Path, *drawn: object) -> None:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        from actionspan.storage.figures import house_style, save_figure

        with house_style():
            layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
            figure = Figure(figsize=self.size, layout=layout)
            draw(figure, *drawn)
            save_figure(figure, path)

    def _markdown(self, table: Table, rows: Sequence[Row]) -> str:
        forms = {**self.forms, **table.forms}
        shown = rows if table.rows is None else table.rows
        align = table.align or "".join(
            "l" if all(isinstance(row[name], str) for row in shown) else "r"
            for name in table.titles
        )
        texts = [
            [_text(row[name], forms.get(name, NUMBER), table.words) for name in table.titles]
            for row in shown
        ]
        lines = markdown_table(align, list(table.titles.values()), texts)
        return "\n".join([*table.caption, "", *lines, ""])


def _text(cell: Cell, form: str, words: Mapping[str, str] = {}) -> str:
    if isinstance(cell, str | Integral | Estimate):
        return words.get(str(cell), str(cell))
    return "" if form and math.isnan(cell) else f"{cell:{form}}"


def table_cells(rows: Sequence[Row], forms: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and the rows of a TSV; unknown values are empty.

    The first row decides which columns have intervals.
    """
    columns = [
        f"{name}{end}"
        for name, cell in rows[0].items()
        for end in (_ENDS if isinstance(cell, Estimate) else _ENDS[:1])
    ]
    cells: list[list[str]] = []
    for row in rows:
        cells.append([])
        for name, cell in row.items():
            if isinstance(cell, Estimate):
                cells[-1] += cell.cells()
            else:
                cells[-1].append(_text(cell, forms.get(name, NUMBER)))
    return columns, cells


def read_frame(path: Path, columns: Sequence[str] = ()) -> DataFrame:
    """Read a table of an experiment; numbers are numbers, NaN where a cell is empty.

    Raises:
        InputError: It has no row, or lacks one of the columns.
    """
    rows = read_tsv(path)
    missing = [column for column in columns if not rows or column not in rows[0]]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}: not a table of this paper")
    return frame_of(rows)


def frame_of(rows: Sequence[Mapping[str, str]]) -> DataFrame:
    """Return rows of text as a data frame; columns that hold numbers alone are numbers.

    Raises:
        InputError: pandas is not installed.
    """
    pd = needed("pandas", "papers")
    names = list(rows[0]) if rows else []
    return pd.DataFrame({name: _numbers([row[name] for row in rows]) for name in names})


def _numbers(cells: list[str]) -> list[int] | list[float] | list[str]:
    try:
        return [int(cell) for cell in cells]
    except ValueError:
        pass
    try:
        return [float(cell or "nan") for cell in cells]
    except ValueError:
        return cells


def where(frame: DataFrame, **cells: object) -> DataFrame:
    """Return the rows that have these cells."""
    for column, cell in cells.items():
        frame = frame[frame[column] == cell]
    return frame


def values(frame: DataFrame, column: str, **cells: object) -> Float64:
    """Return a column of the rows that have these cells, in their order."""
    found: Float64 = where(frame, **cells)[column].to_numpy(np.float64)
    return found


def over_rows(
    frame: DataFrame, column: str, confidence: float, form: str = ".3f", **cells: object
) -> Estimate:
    """Return the mean over the seeds of the rows that have these cells, and its interval."""
    found = values(frame, column, **cells)
    if not len(found) or np.isnan(found).any():
        return Estimate(why_not="none", form=form)
    return over_seeds([found], confidence, form=form)
