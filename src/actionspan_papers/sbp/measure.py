"""Measure the memory and the time of ways to train an encoder end to end."""

import numpy as np

from actionspan_papers.experiments import Experiment, Row, Table, titled, values, where
from actionspan_papers.kinds import DataFrame, Figure, Flags
from actionspan_papers.sbp.settings import MeasureSettings

_TITLES = titled(
    "way; keep_ratio: r; saved_bytes: saved bytes, counted; saved_part: of full; saved_by_form: "
    "closed form; operations: operations of full, counted; operations_by_form: closed form; "
    "growth_bytes: growth of memory; growth_part: of full; expected_bytes: expected by a plan; "
    "step_seconds: seconds a step; seconds_part: of full"
)
_BYTES = ["saved_bytes", "saved_by_form", "growth_bytes", "expected_bytes"]
_PARTS = ("saved_part", "growth_part", "seconds_part")
_FORMS = dict.fromkeys(("operations", "operations_by_form", "step_seconds", *_PARTS), ".4f")
_PANELS = dict(zip(_PARTS, ("saved bytes", "growth of memory", "seconds a step"), strict=True))


def _rows(_: Flags, settings: MeasureSettings) -> list[Row]:
    from actionspan_papers.sbp.measured import measured_rows

    return measured_rows(settings)


def _table(frame: DataFrame, _: Flags, settings: MeasureSettings) -> Table:
    cpu = settings.device == "cpu"
    memory = "peak resident memory" if cpu else "memory allocated on the GPU"
    clock = "CPU seconds" if cpu else "seconds of the clock"
    caption = [
        f"Ways to train {settings.network} (untrained, norms folded) and a temporal network on "
        f"{settings.snippets} images of {settings.input_size} pixels; pieces of "
        f"{settings.piece}, one thread, MiB.",
        "- **saved**: counted by hooks of autograd, without numbers; closed form r·M_s + M_c, or "
        "max(m·a, M_c) where pieces of m are run again.",
        "- **operations**: PyTorch's counter, which does not know grouped convolutions (empty "
        "then); closed form of the encoder alone, with backward as two forwards.",
        f"- **growth**: of {memory} by building and three steps in a new process, and the growth "
        "that a plan of memory expects.",
        f"- **seconds**: {clock} of {settings.repeats} steps of each way in turns in one process, "
        "medians; ratios are of neighbours in turn.",
    ]
    mebibytes = frame.assign(**{name: frame[name] / 2**20 for name in _BYTES})
    forms = dict.fromkeys(_BYTES, ".1f")
    rows = mebibytes.to_dict("records")
    return Table(caption=caption, titles=_TITLES, rows=rows, forms=forms)


def _draw(figure: Figure, frame: DataFrame, *_: object) -> None:
    """Draw what ways need of full training over the ratio of kept rows."""
    from actionspan.storage.figures import COLOURS, QUIET

    panels = figure.subplots(1, len(_PANELS))
    sampled = frame[frame["keep_ratio"].notna()].sort_values("keep_ratio")
    ways = frame["way"][sampled.index.sort_values()].unique()
    for axes, (column, title) in zip(panels, _PANELS.items(), strict=True):
        for way, colour in zip(ways, COLOURS, strict=False):
            known = where(sampled, way=way).dropna(subset=[column])
            if len(known):
                points = known["keep_ratio"], known[column]
                axes.plot(*points, "o-", color=colour, label=way, markersize=3, linewidth=1.2)
        for way, look in (("full", "-"), ("checkpoint", "--"), ("frozen", ":")):
            (alone,) = values(frame, column, way=way)
            if not np.isnan(alone):
                axes.axhline(alone, color=QUIET, linewidth=0.8, linestyle=look, label=way)
        axes.set(title=title, xlabel="part of rows kept, r", ylim=(0, None), xlim=(0, None))
    panels[0].set_ylabel("of full training")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7)


EXPERIMENT = Experiment(
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(9.2, 3.2),
    settings=(MeasureSettings,),
    forms={**_FORMS, "saved_by_form": ".0f"},
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
