"""Divide networks into stages: bounds by measured time and by counted multiplications."""

from collections.abc import Iterator
from itertools import pairwise, product

from actionspan_papers.experiments import Experiment, Row, Table, values
from actionspan_papers.kinds import DataFrame, Figure
from actionspan_papers.partime.published import ENCODERS
from actionspan_papers.partime.settings import WORKS, SpeedSettings


def _rows(_: object, settings: SpeedSettings) -> Iterator[Row]:
    """Yield a row a network, work and number of stages."""
    from actionspan.networks.division import division
    from actionspan.streaming.balance import Balanced, layers_of, partition
    from actionspan_papers.partime.networks import counted_cases, even_cuts
    from actionspan_papers.partime.pipelines import balanced, counted_costs

    for case, (work, learning) in product(counted_cases(settings), WORKS.items()):
        network, sample = case.network(settings), case.sample()
        layers = layers_of(network, division)
        counted = counted_costs(layers, sample)
        for depth, stages in balanced(network, sample, settings.depths, learning=learning):
            best, even = partition(counted, depth), even_cuts(len(layers), depth)
            yield {
                **case.named,
                "work": work,
                "stages": depth,
                "layers": len(layers),
                "cuts": " + ".join(str(b - a) for a, b in pairwise(stages.cuts)),
                "stage_ms": " | ".join(f"{1000 * s:.2f}" for s in stages.seconds),
                "bound": stages.bound,
                "bound_by_operations": Balanced(layers, counted, best).bound,
                "even_bound": Balanced(layers, counted, even).bound,
            }


def _table(*_: object) -> Table:
    caption = [
        "Stages of least slowest time. Bound: CPU time of the whole by the slowest stage's, "
        "as measured; `by counting`: the same of multiplications, which are no matter of the "
        "machine; `as many layers each`: by counting, without balancing. F is the least.",
        f"ResNet-18 and EfficientNet-Lite0 ({' and '.join(ENCODERS)}) are cut inside their blocks "
        "too; their skip connections travel with the messages.",
    ]
    titles = {"network": "network", "R": "R", "work": "work", "stages": "D", "layers": "layers"}
    titles |= {"cuts": "layers of each", "stage_ms": "ms of each", "bound": "bound"}
    titles |= {"bound_by_operations": "by counting", "even_bound": "as many layers each"}
    return Table(caption=caption, titles=titles)


def _draw(figure: Figure, rows: DataFrame, *_: object) -> None:
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
    repeatable=True,
    forms=dict.fromkeys(["bound", "bound_by_operations", "even_bound"], ".4f"),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
