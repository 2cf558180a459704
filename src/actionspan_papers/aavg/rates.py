"""Write and draw the best validation accuracy over learning rates, of AAVG and of one learner."""

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES, ExperimentSettings
from actionspan_papers.estimates import over_seeds, over_seeds_words
from actionspan_papers.experiments import Cell, Experiment, Row, Table, titled, values, where
from actionspan_papers.kinds import DataFrame, Figure, Flags
from actionspan_papers.runs import range_cells, range_forms

_COLUMN = "best_accuracy"
_RANGE = range_forms(_COLUMN)
_Sweep = dict[tuple[str, str], dict[float, Float64]]
"""By method and stream, then rising rate: (S,) the best accuracy of each seed, in percent."""


def _read(arguments: Flags, _: ExperimentSettings) -> tuple[_Sweep, str]:
    """Return the best accuracies of each method, stream and rate, and how runs were trained.

    Raises:
        InputError: Two runs are of one method and rate.
    """
    logs, trained = readers.read_logged_runs(arguments, None)
    sweep: _Sweep = {}
    for (name, stream), run_logs in logs.items():
        # the rate of the first epoch is the configured one: it falls after epochs alone
        rate = float(run_logs.columns["learning_rate"][0, 0])
        rates = sweep.setdefault((run_logs.learning.method, stream), {})
        if rate in rates:
            raise InputError(f"{name}, {stream}: the learning rate {rate:g} a second time")
        rates[rate] = run_logs.accuracy.max(axis=1)
    return {key: dict(sorted(rates.items())) for key, rates in sweep.items()}, trained


def _rows(read: tuple[_Sweep, str], _: ExperimentSettings) -> list[Row]:
    """Return a row a method, stream and rate."""
    rows: list[Row] = []
    for (method, stream), tried in read[0].items():
        for rate, best in tried.items():
            named: Row = {"method": method, "stream": stream, "learning_rate": rate}
            rows.append({**named, "seeds": len(best), **range_cells(_COLUMN, best)})
    return rows


def _table(_: object, read: tuple[_Sweep, str], settings: ExperimentSettings) -> Table:
    """Return a row a method and stream, a column a rate."""
    sweep, trained = read
    caption = [
        "Best validation accuracy of all epochs over learning rates, in percent; `none` is one "
        "learner alone, the others average their models once an epoch.",
        f"{trained}, but for the learning rate.",
        f"{over_seeds_words(settings.confidence)} The bars of the figure go from "
        "the lowest to the highest seed.",
    ]
    rates = sorted({rate for tried in sweep.values() for rate in tried})
    titles = titled("method; stream; seeds") | {repr(rate): f"{rate:g}" for rate in rates}
    rows: list[Row] = []
    for (method, stream), tried in sweep.items():
        seeds = " or ".join(map(str, sorted({len(best) for best in tried.values()})))
        cells: dict[str, Cell] = dict.fromkeys(map(repr, rates), "")
        for rate, best in tried.items():
            if np.isfinite(best).all():
                cells[repr(rate)] = over_seeds([best], settings.confidence).percentage()
        rows.append({"method": method, "stream": STREAM_NAMES[stream], "seeds": seeds, **cells})
    return Table(caption=caption, titles=titles, rows=rows, align="llr" + "r" * len(rates))


def _draw(figure: Figure, frame: DataFrame, *_: object) -> None:
    """Draw a panel a stream: the mean over learning rates, bars from lowest to highest seed."""
    from actionspan.storage.figures import COLOURS

    streams = frame["stream"].unique()
    figure.set_size_inches(3.4 * len(streams) + 0.6, 3.2)
    panels = figure.subplots(1, len(streams), sharey=True, squeeze=False)[0]
    for axes, stream in zip(panels, streams, strict=True):
        own = where(frame, stream=stream)
        every = sorted(own["learning_rate"].unique())
        axes.set(xscale="log", xlabel="learning rate", title=STREAM_NAMES[stream])
        axes.set_xlim(every[0] / 1.5, every[-1] * 1.5)
        for method, colour in zip(own["method"].unique(), COLOURS, strict=False):
            rates, mean, low, high = (
                values(own, column, method=method) for column in ("learning_rate", *_RANGE)
            )
            # NaN, without validation clips, draws nothing
            dots = {"label": method, "color": colour, "marker": "o", "markersize": 4}
            axes.errorbar(rates, mean, [mean - low, high - mean], **dots)
        axes.set_xticks(every, [f"{rate:g}" for rate in every])
        axes.minorticks_off()
    panels[0].set_ylabel("best validation accuracy (%)")
    panels[-1].legend(frameon=False)


EXPERIMENT = Experiment(
    rows=_rows, table=_table, figure=_draw, forms=_RANGE, **readers.ON_LOGS | {"read": _read}
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
