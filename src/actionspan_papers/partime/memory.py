"""Count the bytes that the stages of a pipeline need in each gradient mode."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import product

from actionspan_papers.experiments import Experiment, Row, Table, values
from actionspan_papers.kinds import DataFrame, Figure
from actionspan_papers.partime.published import PLAIN
from actionspan_papers.partime.settings import MODES, SpeedSettings


def _rows(_: object, settings: SpeedSettings) -> Iterator[Row]:
    """Yield a row a network, number of stages, mode and stage."""
    from actionspan.networks.division import division
    from actionspan.streaming.balance import layers_of
    from actionspan_papers.partime.networks import Case
    from actionspan_papers.partime.pipelines import footprints, kept_bytes, stages_by_counting

    chosen = (PLAIN, settings.sides[0]), ("resnet18", settings.encoder_side)
    for (name, side), depth, mode in product(chosen, settings.depths, MODES):
        case = Case(name, side, settings.outputs[-1])
        network, sample = case.network(settings), case.sample()
        target = case.target(network)
        stages = stages_by_counting(layers_of(network, division), sample, depth)
        sizes = footprints(stages, sample, target, mode)
        counted = kept_bytes(stages, sample, target, mode)
        for stage, (size, kept) in enumerate(zip(sizes, counted, strict=True), start=1):
            named = {**case.named, "stages": depth, "mode": mode, "stage": stage}
            yield {**named, **asdict(size), "total": size.total, "counted": kept}


def _table(*_: object) -> Table:
    from actionspan.streaming.balance import StageBytes

    parts = [part.name for part in fields(StageBytes)]
    caption = [
        "Bytes of each stage that learns with SGD, by the closed form: "
        f"{', '.join(parts)}; saved tensors are of one sample. `counted` are the bytes that the "
        "stage really kept of the past, to compare with `kept`.",
        "PipeDream's D − h + 1 versions of the weights hold for its timetable; in this one `stash` "
        "needs 2(D − h) in addition to the current ones. Cuts are by counted multiplications.",
    ]
    names = ("network", "stages", "mode", "stage", *parts, "total", "counted")
    return Table(caption=caption, titles={name: name for name in names} | {"stages": "D"})


def _draw(figure: Figure, rows: DataFrame, *_: object) -> None:
    from actionspan.storage.figures import COLOURS

    networks, depths = rows["network"].unique(), rows["stages"].unique()
    panels = figure.subplots(1, len(networks), squeeze=False)[0]
    for axes, network in zip(panels, networks, strict=True):
        for place, mode in enumerate(MODES):
            totals = [
                sum(values(rows, "total", network=network, stages=depth, mode=mode)) / 2**20
                for depth in depths
            ]
            places = [number + 0.27 * (place - 1) for number in range(len(depths))]
            axes.bar(places, totals, 0.25, color=COLOURS[place], label=mode)
        axes.set_xticks(range(len(depths)), map(str, depths))
        axes.set(title=network, xlabel="stages D")
    panels[0].set_ylabel("all stages (MiB)")
    panels[0].legend(frameon=False)


EXPERIMENT = Experiment(
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(8.4, 3.4),
    settings=(SpeedSettings,),
    repeatable=True,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
