"""Files of many runs and seeds: read by run, as rows over epochs, and drawn as curves."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan.workflow.runs import RunName
from actionspan_papers.experiments import Cell, Row, values
from actionspan_papers.kinds import DataFrame, Figure

Key = TypeVar("Key", bound=Hashable)


def by_seed(runs: Iterable[tuple[Key, int, Path]]) -> dict[Key, dict[int, Path]]:
    """Return the file of each seed of each run, seeds rising, runs in the order given.

    Raises:
        InputError: Two files are of one run and seed.
    """
    files: dict[Key, dict[int, Path]] = {}
    for key, seed, path in runs:
        seeds = files.setdefault(key, {})
        if seed in seeds:
            name = RunName(key if isinstance(key, str) else key[0], seed)  # type: ignore[index]
            raise InputError(f"{path}: {name} is in {seeds[seed]} already")
        seeds[seed] = path
    return {key: dict(sorted(seeds.items())) for key, seeds in files.items()}


def named_files(
    names: Iterable[str], paths: Iterable[Path], form: str
) -> dict[str, dict[int, Path]]:
    """Return the file of each seed of each method or model, by names such as mtn-seed2.

    `form` is the right form of their paths, for the message.

    Raises:
        InputError: A name is empty, or two files are of one method and seed.
    """
    files = list(zip(names, paths, strict=True))
    for name, path in files:
        if not name:
            raise InputError(f"{path}: its path names no method; the form is {form}")
    runs = [(RunName.of(name), path) for name, path in files]
    return by_seed((run.base, run.seed, path) for run, path in runs)


def read_logs(
    files: Mapping[Key, Mapping[int, Path]], columns: Sequence[str], *, all_alike: bool
) -> dict[Key, Float64]:
    """Read logs of training: (columns, S, E) numbers of each run.

    Raises:
        InputError: A file is not a log, or has another number of epochs than the first file of the
            run (or of all runs, if they must be `all_alike`).
    """
    logs = {}
    first: tuple[Path, int] | None = None  # and its epochs
    for key, seeds in files.items():
        tables = []
        first = first if all_alike else None
        for path in seeds.values():
            table = _read_log(path, columns)
            first = first or (path, len(table))
            if len(table) != first[1]:
                raise InputError(f"{path}: {len(table)} epochs, {first[0]} has {first[1]}")
            tables.append(table)
        logs[key] = np.array(tables).transpose(2, 0, 1)
    return logs


def _read_log(path: Path, columns: Sequence[str]) -> list[list[float]]:
    """Return a row of numbers an epoch."""
    table: list[list[float]] = []
    for number, row in enumerate(read_tsv(path), start=2):
        table.append([])
        for column in columns:
            try:
                table[-1].append(float(row[column]))
            except (KeyError, ValueError):
                raise InputError(f"{path}: row {number}: no number {column!r}") from None
    if not table:
        raise InputError(f"{path}: no epoch")
    return table


def epoch_rows(
    named: Mapping[str, str], column: str, curve: Float64, samples: Float64 | None = None
) -> list[Row]:
    """Return a row an epoch: mean, lowest and highest seed of an (S, E) curve.

    It begins with the cells that name the curve; (E,) samples so far get a column of their own.
    """
    rows: list[Row] = []
    for epoch, seeds in enumerate(curve.T):
        row: dict[str, Cell] = {**named, "epoch": epoch + 1}
        if samples is not None:
            row["samples"] = int(samples[epoch])
        rows.append({**row, "seeds": len(seeds), **range_cells(column, seeds)})
    return rows


def range_cells(column: str, seeds: Float64) -> dict[str, Cell]:
    """Return the cells of the mean, the lowest and the highest of (S,) values."""
    ends = (float(seeds.mean()), float(seeds.min()), float(seeds.max()))
    return dict(zip(range_forms(column), ends, strict=True))


def range_forms(column: str) -> dict[str, str]:
    """Return the forms of these cells: all digits, so that they read back to the same bits."""
    return dict.fromkeys((column, f"{column}_low", f"{column}_high"), "")


def draw_curves(figure: Figure, frame: DataFrame, name: str, column: str, title: str) -> None:
    """Draw the rows of `epoch_rows`: a curve for each `name`, named at its end, in its band.

    A curve with an epoch without a value is left out, and the figure states it.
    """
    from matplotlib.ticker import MaxNLocator

    from actionspan.storage.figures import COLOURS, spread_labels

    # (E,) mean, lowest and highest of each curve that has them
    curves = {
        str(own): [values(frame, part, **{name: own}) for part in range_forms(column)]
        for own in frame[name].unique()
    }
    without = [own for own, (mean, *_) in curves.items() if not np.isfinite(mean).all()]
    axes = figure.subplots()
    axes.set(title=title, xlabel="epoch")
    if without:
        measure = column.replace("_", " ")
        axes.set_xlabel(f"epoch\nno {measure} in some epoch: {', '.join(without)}")
    curves = {own: band for own, band in curves.items() if own not in without}
    if not curves:
        return
    # axes that hold all bands
    last = float(max(len(mean) for mean, *_ in curves.values()))
    bottom = min(float(low.min()) for _, low, _ in curves.values())
    top = max(float(high.max()) for *_, high in curves.values())
    margin = 0.05 * (top - bottom) or 0.05
    axes.set_xlim(1 if last > 1 else 0, last)
    axes.set_ylim(bottom - margin, top + margin)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    # bands and lines
    colours = {own: COLOURS[index % len(COLOURS)] for index, own in enumerate(curves)}
    for own, (mean, low, high) in curves.items():
        epochs = np.arange(1.0, len(mean) + 1)
        axes.fill_between(epochs, low, high, color=colours[own], alpha=0.15, linewidth=0)
        axes.plot(epochs, mean, color=colours[own], linewidth=1.7, zorder=3)
    # names; heights in parts of the axes, where `spread_labels` keeps them above the lower edge
    height = top - bottom + 2 * margin
    lasts = {own: float(mean[-1]) for own, (mean, *_) in curves.items()}
    ends = {own: (value - bottom + margin) / height for own, value in lasts.items()}
    arrow = {"arrowstyle": "-", "linewidth": 0.7, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 2}
    for own, place in spread_labels(ends, 0.068).items():
        axes.annotate(
            own,
            xy=(float(len(curves[own][0])), lasts[own]),
            xytext=(1.05, place),
            textcoords="axes fraction",
            va="center",
            color=colours[own],
            weight="bold",
            arrowprops={**arrow, "color": colours[own]},
        )
