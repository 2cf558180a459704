"""Learn classes continually from streams of snippets in pipelines, as in figure 3 of paper 002."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from actionspan.arrays import Float64
from actionspan_papers.estimates import over_seeds
from actionspan_papers.experiments import Experiment, Row, Table, over_rows, values, where
from actionspan_papers.partime.published import SEQUENTIAL_ACCURACY
from actionspan_papers.partime.settings import (
    SEQUENTIAL,
    ClassificationSettings,
    PartimeSettings,
    Variant,
    variants,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_LOOKS = {"paper": "-", "inputs": "--", "stash": ":", "last stage only": "-."}
_Learned = tuple[Sequence[str], Sequence[Row]]
"""The classes, and a row a stream, window, way of learning, rate and seed."""


def _learn(
    arguments: argparse.Namespace, own: PartimeSettings, settings: ClassificationSettings
) -> _Learned:
    from actionspan_papers.partime.classification_rows import classification_rows

    files = arguments.features, arguments.annotations
    return classification_rows(*files, arguments.subset, own, settings)


def _table(
    rows: "DataFrame", learned: _Learned, own: PartimeSettings, settings: ClassificationSettings
) -> Table:
    classes, _ = learned
    printed = ", ".join(f"{value} at {window}" for window, value in SEQUENTIAL_ACCURACY.items())
    tried = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
    caption = [
        f"Continual classification (figure 3): accuracy on videos that are not learned, mean over "
        f"the {len(classes)} classes ({', '.join(classes)}), after one pass over a stream of at "
        f"most {settings.samples} snippets. {own.seeds} seeds; means and "
        f"{100 * own.confidence:g} % intervals over seeds.",
        "The window slides by one snippet a step. Changed share: 2(D − 1)/B, the part of the "
        "window that is another when the first stage's gradient comes.",
        f"Adam; each way has the rate that was best on training videos set aside, of {tried}; the "
        "TSV has all that were tried. Rare classes weigh as much in the loss as common ones.",
        f"Published, without a pipeline (ResNet-50, CIFAR-10, 5 passes): {printed}; with one the "
        "paper has curves only, below these.",
    ]
    titles = {"stream": "stream", "window": "window B", "way": "way"}
    titles |= {"changed_share": "changed share", "learning_rate": "rate"}
    titles |= {"accuracy": "accuracy", "gap": "less than sequential"}
    shown = [
        _shown(runs, way, own.confidence)
        for _, runs in rows.groupby(["stream", "window"], sort=False)
        for way in variants(own.stages, last_only=True)
    ]
    return Table(caption=caption, titles=titles, rows=shown, forms={"changed_share": ".2f"})


def _shown(runs: "DataFrame", way: Variant, confidence: float) -> Row:
    scored = where(runs, **way.cells, part="scored")
    return {
        **scored.iloc[0][["stream", "window", "changed_share", "learning_rate"]],
        "way": way.name,
        "accuracy": over_rows(scored, "accuracy", confidence),
        "gap": over_seeds([gaps(runs, way)], confidence, form="+.3f"),
    }


def gaps(runs: "DataFrame", way: Variant) -> Float64:
    """Return how far a way is below sequential learning: of one stream and window, by seed."""
    ways = SEQUENTIAL, way
    alone, own = (values(runs, "accuracy", **each.cells, part="scored") for each in ways)
    difference: Float64 = alone - own
    return difference


def _draw(
    figure: "Figure", rows: "DataFrame", _: _Learned, own: PartimeSettings, __: object
) -> None:
    """Draw accuracy over the size of the window, a panel a stream, a line a way."""
    from actionspan.storage.figures import COLOURS, INK

    orders, sizes = rows["stream"].unique(), rows["window"].unique()
    panels = figure.subplots(1, len(orders), sharey=True, squeeze=False)[0]
    colours = dict(zip((1, *own.stages), (INK, *COLOURS), strict=False))
    for axes, order in zip(panels, orders, strict=True):
        for way in variants(own.stages, last_only=True):
            scored = where(rows, stream=order, **way.cells, part="scored")
            found = [values(scored, "accuracy", window=size).mean() for size in sizes]
            look: dict[str, Any] = {"color": colours[way.stages], "label": way.name}
            look |= {"marker": "o", "markersize": 3, "linewidth": 1.4}
            axes.plot(list(map(str, sizes)), found, _LOOKS[way.mode], **look)
        axes.set(title=f"stream {order}", xlabel="window B (samples)")
    panels[0].set_ylabel("accuracy, mean over classes")
    legend = panels[0].get_legend_handles_labels()
    figure.legend(*legend, loc="outside right center", frameon=False, fontsize=7.5)


EXPERIMENT = Experiment(
    inputs={
        "features": "features/features.h5",
        "annotations": "dataset/annotations.json",
        "subset": {"default": "validation", "help": "whose videos are scored"},
    },
    read=_learn,
    rows=lambda learned, *_: learned[1],
    table=_table,
    figure=_draw,
    size=(8.4, 3.8),
    settings=(PartimeSettings, ClassificationSettings),
    forms={"accuracy": ".4f"},
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
