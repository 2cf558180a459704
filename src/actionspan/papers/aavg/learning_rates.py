"""The best validation accuracy over learning rates, of AAVG and of one learner alone."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from actionspan.errors import InputError
from actionspan.evaluation.resampling import Floats
from actionspan.files.figures import COLOURS, house_style, save_figure
from actionspan.files.storage import read_tsv, write_tsv
from actionspan.papers.aavg.accuracy_curves import seeds_estimate
from actionspan.papers.aavg.comparisons import STREAM_NAMES, STREAMS
from actionspan.papers.aavg.run_files import Of, RunLogs

RATE_COLUMNS = (
    "method",
    "stream",
    "learning_rate",
    "seeds",
    "best_accuracy",
    "best_accuracy_low",
    "best_accuracy_high",
)

Sweep = dict[tuple[str, str], dict[float, Floats]]
"""By method and stream, then rising rate: (S,) the best accuracy of each seed, in percent."""


def sweep_of(logs: Mapping[Of, RunLogs]) -> Sweep:
    """Return the best accuracies of each method, stream and learning rate.

    Raises:
        InputError: Two runs are of one method and rate.
    """
    sweep: Sweep = {}
    for (name, stream), run in logs.items():
        # the rate of the first epoch is the configured one: it falls after epochs alone
        rate = float(run.columns["learning_rate"][0, 0])
        rates = sweep.setdefault((run.learning.method, stream), {})
        if rate in rates:
            raise InputError(f"{name}, {stream}: the learning rate {rate:g} a second time")
        rates[rate] = run.accuracy.max(axis=1)
    return {of: dict(sorted(rates.items())) for of, rates in sweep.items()}


def write_sweep(path: Path, sweep: Sweep) -> None:
    """Write of each method, stream and rate the mean and range of the seeds, in percent."""
    rows = [
        (method, stream, f"{rate:g}", len(best))
        + tuple(repr(float(of(best))) for of in (np.mean, np.min, np.max))
        for (method, stream), rates in sweep.items()
        for rate, best in rates.items()
    ]
    write_tsv(path, RATE_COLUMNS, rows)


def read_sweep(path: Path) -> dict[str, dict[str, list[list[float]]]]:
    """Read such a table: by stream and method, rows of rate, mean, lowest, highest.

    Raises:
        InputError: The file is missing, a row is not of this table or there is none.
    """
    found: dict[str, dict[str, list[list[float]]]] = {}
    for number, row in enumerate(read_tsv(path), start=2):
        try:
            point = [float(row[column]) for column in ("learning_rate", *RATE_COLUMNS[4:])]
            if row["stream"] not in STREAMS:
                raise ValueError
            found.setdefault(row["stream"], {}).setdefault(row["method"], []).append(point)
        except (KeyError, ValueError):
            columns = ", ".join(RATE_COLUMNS)
            raise InputError(f"{path}: row {number}: not a row of {columns}") from None
    if not found:
        raise InputError(f"{path}: no row")
    return found


def draw_sweep(path: Path, sweep: Mapping[str, Mapping[str, list[list[float]]]]) -> None:
    """Draw a panel a stream: the mean over learning rates, bars from lowest to highest seed.

    Args:
        path: An .svg or .png file.
        sweep: What `read_sweep` returned.
    """
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
        figure = Figure(figsize=(3.4 * len(sweep) + 0.6, 3.2), layout=layout)
        panels = figure.subplots(1, len(sweep), sharey=True, squeeze=False)[0]
        for axes, (stream, methods) in zip(panels, sweep.items(), strict=True):
            axes.set(xscale="log", xlabel="learning rate", title=STREAM_NAMES[stream])
            _draw(axes, methods)
        panels[0].set_ylabel("best validation accuracy (%)")
        panels[-1].legend(frameon=False)
        save_figure(figure, path)


def _draw(axes: Axes, methods: Mapping[str, list[list[float]]]) -> None:
    rates = sorted({row[0] for rows in methods.values() for row in rows})
    axes.set_xlim(rates[0] / 1.5, rates[-1] * 1.5)
    for number, (method, rows) in enumerate(methods.items()):
        rate, mean, low, high = np.array(rows).T
        bars = [mean - low, high - mean]
        # NaN, where there are no validation clips, draws nothing
        axes.errorbar(
            rate, mean, bars, label=method, color=COLOURS[number], marker="o", markersize=4
        )
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.minorticks_off()


def sweep_markdown(sweep: Sweep, measured: str, confidence: float) -> str:
    """Return the sweep in Markdown.

    Args:
        sweep: What `sweep_of` returned.
        measured: How and on what these runs were trained, in words.
        confidence: Of the intervals, in (0, 1).
    """
    rates = sorted({rate for of in sweep.values() for rate in of})
    lines = [
        "Best validation accuracy of all epochs over learning rates, in percent; `none` is one "
        "learner alone, the others average their models once an epoch.",
        f"{measured}, but for the learning rate.",
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none. The bars of the figure go from the lowest to the "
        "highest seed.",
        "",
        "| method | stream | seeds | " + " | ".join(f"{rate:g}" for rate in rates) + " |",
        "|---|---|---:" + "|---:" * len(rates) + "|",
    ]
    for (method, stream), of in sweep.items():
        counts = sorted({len(best) for best in of.values()})
        cells = []
        for rate in rates:
            known = rate in of and np.isfinite(of[rate]).all()
            cells.append(seeds_estimate(of[rate], confidence) if known else "")
        seeds = " or ".join(map(str, counts))
        words = [method, STREAM_NAMES[stream], seeds, *cells]
        lines.append("| " + " | ".join(words) + " |")
    return "\n".join(lines) + "\n"
