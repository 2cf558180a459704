"""The table to read and the figure of measured ways."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from actionspan_papers.sbp.measure_settings import MeasureSettings
from actionspan_papers.sbp.measured_rows import COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, str]
ALIGN = "lr" + "r" * (len(COLUMNS) - 2)
_BYTES = ("saved_bytes", "saved_by_form", "growth_bytes", "expected_bytes")
_PANELS = {
    "saved_part": "saved bytes",
    "growth_part": "growth of memory",
    "seconds_part": "seconds a step",
}


def caption(settings: MeasureSettings) -> list[str]:
    """Return the lines above the table."""
    cpu = settings.device == "cpu"
    memory = "peak resident memory" if cpu else "memory allocated on the GPU"
    clock = "CPU seconds" if cpu else "seconds of the clock"
    return [
        f"Ways to train {settings.network} (untrained, norms folded) and a temporal network on "
        f"{settings.snippets} pictures of {settings.input_size} pixels; pieces of "
        f"{settings.piece}, one thread, MiB.",
        "- **saved**: counted by hooks of autograd, without numbers; closed form r·M_s + M_c, or "
        "max(m·a, M_c) where pieces of m are run again.",
        "- **operations**: PyTorch's counter, which does not know grouped convolutions (empty "
        "then); closed form of the encoder alone, with backward as two forwards.",
        f"- **growth**: of {memory} by building and three steps in a new process, and what a plan "
        "of memory expects.",
        f"- **seconds**: {clock} of {settings.repeats} steps of each way in turns in one process, "
        "medians; ratios are of neighbours in turn.",
    ]


def shown_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return the rows with bytes in MiB."""
    return [
        {name: _mebibytes(row[name]) if name in _BYTES else row[name] for name in COLUMNS}
        for row in rows
    ]


def _mebibytes(count: str) -> str:
    return f"{float(count) / 2**20:.1f}" if count else ""


def draw(figure: "Figure", rows: Sequence[Row]) -> None:
    """Draw what ways need of full training over the ratio of kept rows."""
    from actionspan.files.figures import COLOURS, QUIET

    panels = figure.subplots(1, len(_PANELS))
    ways = list(dict.fromkeys(row["way"] for row in rows if row["keep_ratio"]))
    for axes, (column, title) in zip(panels, _PANELS.items(), strict=True):
        for way, colour in zip(ways, COLOURS, strict=False):
            points = [
                (float(row["keep_ratio"]), float(row[column]))
                for row in rows
                if row["way"] == way and row[column]
            ]
            if points:
                ratios, parts = zip(*sorted(points), strict=True)
                axes.plot(ratios, parts, "o-", color=colour, label=way, markersize=3, linewidth=1.2)
        for way, look in (("full", "-"), ("checkpoint", "--"), ("frozen", ":")):
            (alone,) = [row[column] for row in rows if row["way"] == way]
            if alone:
                axes.axhline(float(alone), color=QUIET, linewidth=0.8, linestyle=look, label=way)
        axes.set(title=title, xlabel="part of rows kept, r", ylim=(0, None), xlim=(0, None))
    panels[0].set_ylabel("of full training")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7)
