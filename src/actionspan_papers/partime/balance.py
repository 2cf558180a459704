"""Divide networks into stages: bounds by measured time and by counted multiplications."""

from typing import TYPE_CHECKING

from actionspan_papers.experiments import Experiment, Row, Table, values
from actionspan_papers.partime.published import ENCODERS
from actionspan_papers.partime.settings import SpeedSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


def _rows(_: object, settings: SpeedSettings) -> list[Row]:
    from actionspan_papers.partime.balance_rows import balance_rows

    return balance_rows(settings)


def _table(*_: object) -> Table:
    caption = [
        "Stages of least slowest time. Bound: CPU time of the whole by that of the slowest stage, "
        "as measured; `by counting`: the same of multiplications, which are no matter of the "
        "machine; `as many layers each`: by counting, without balancing. F is the least.",
        f"ResNet-18 and EfficientNet-Lite0 ({' and '.join(ENCODERS)}) are cut inside their blocks "
        "too; their skip connections travel with the messages.",
    ]
    titles = {"network": "network", "R": "R", "work": "work", "stages": "D", "layers": "layers"}
    titles |= {"cuts": "layers of each", "stage_ms": "ms of each", "bound": "bound"}
    titles |= {"bound_by_operations": "by counting", "even_bound": "as many layers each"}
    return Table(caption=caption, titles=titles)


def _draw(figure: "Figure", rows: "DataFrame", *_: object) -> None:
    from actionspan.storage.figures import COLOURS, QUIET

    axes = figure.subplots()
    depths = sorted(rows["stages"].unique())
    lines = (("bound_by_operations", "balanced", "-"), ("even_bound", "as many layers each", ":"))
    for colour, network in zip(COLOURS, rows["network"].unique(), strict=False):
        for column, how, look in lines:
            runs = [values(rows, column, network=network, stages=depth) for depth in depths]
            means, label = [bounds.mean() for bounds in runs], f"{network}, {how}"
            axes.plot(depths, means, look, color=colour, label=label, marker="o", markersize=3)
    axes.plot(depths, depths, color=QUIET, linewidth=0.8)
    axes.set(xlabel="stages D", ylabel="bound by counting", xticks=depths)
    legend = axes.get_legend_handles_labels()
    figure.legend(*legend, loc="outside right center", frameon=False, fontsize=7)


EXPERIMENT = Experiment(
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(6.6, 3.6),
    settings=(SpeedSettings,),
    forms=dict.fromkeys(["bound", "bound_by_operations", "even_bound"], ".4f"),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
