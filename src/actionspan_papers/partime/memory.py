"""Count the bytes that the stages of a pipeline need in each gradient mode."""

from typing import TYPE_CHECKING

from actionspan_papers.experiments import Experiment, Row, Table, values
from actionspan_papers.partime.settings import MODES, SpeedSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


def _rows(_: object, settings: SpeedSettings) -> list[Row]:
    from actionspan_papers.partime.bytes_rows import memory_rows

    return memory_rows(settings)


def _table(*_: object) -> Table:
    from actionspan_papers.partime.bytes_rows import PARTS

    caption = [
        "Bytes of each stage that learns with SGD, by the closed form: "
        f"{', '.join(PARTS)}; saved tensors are those of one sample. `counted` is what the stage "
        "really kept of the past, to compare with `kept`.",
        "PipeDream's D − h + 1 versions of the weights hold for its timetable; in this one `stash` "
        "needs 2(D − h) beside those of now. Cuts are those of counted multiplications.",
    ]
    names = ("network", "stages", "mode", "stage", *PARTS, "total", "counted")
    return Table(caption=caption, titles={name: name for name in names} | {"stages": "D"})


def _draw(figure: "Figure", rows: "DataFrame", *_: object) -> None:
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
    rows=_rows, table=_table, figure=_draw, size=(8.4, 3.4), settings=(SpeedSettings,)
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
