"""Learn classes continually from streams of snippets in pipelines, as in figure 3 of paper 002."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from actionspan.arrays import Float64
from actionspan.settings import add_settings, from_arguments
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.partime.published import SEQUENTIAL_ACCURACY
from actionspan_papers.partime.settings import (
    ClassificationSettings,
    PartimeSettings,
    Variant,
    variants,
)
from actionspan_papers.rows import Row as Read
from actionspan_papers.rows import distinct, estimate, values
from actionspan_papers.tables import Row, add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS = {"paper": "-", "inputs": "--", "stash": ":", "last stage only": "-."}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="features/features.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    parser.add_argument("--subset", default="validation", help="whose videos are scored")
    add_outputs(parser, figure=True)
    add_settings(parser, PartimeSettings)
    add_settings(parser, ClassificationSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a stream, window, way of learning, rate and seed, and the figure."""
    own, settings = (
        from_arguments(PartimeSettings, arguments),
        from_arguments(ClassificationSettings, arguments),
    )
    from actionspan_papers.partime.classification_rows import classification_rows

    classes, rows = classification_rows(
        arguments.features, arguments.annotations, arguments.subset, own, settings
    )
    caption, titles, align = _summary(own, settings, classes)
    write_table(arguments, rows, caption, align, titles, _shown_rows(rows, own))
    write_figures(arguments, lambda figure: _draw(figure, rows, own), (8.4, 3.8))


def _summary(
    own: PartimeSettings,
    settings: ClassificationSettings,
    classes: Sequence[str],
) -> tuple[list[str], dict[str, str], str]:
    """Return the caption, the titles and the alignment of the table to read."""
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
    return caption, titles, "lrlrrrr"


def _shown_rows(rows: Sequence[Read], own: PartimeSettings) -> list[Row]:
    """Return a row a stream, window and way."""
    shown: list[Row] = []
    for order in distinct(rows, "stream"):
        for window in distinct(rows, "window"):
            for variant in variants(own.stages, last_only=True):
                chosen = _chosen(order, window, variant)
                first = next(row for row in rows if _has(row, chosen))
                shown.append(
                    {
                        "stream": order,
                        "window": window,
                        "way": variant.name,
                        "changed_share": f"{float(first['changed_share']):.2f}",
                        "learning_rate": first["learning_rate"],
                        "accuracy": estimate(rows, "accuracy", own.confidence, chosen),
                        "gap": gap(rows, own, order, window, variant),
                    }
                )
    return shown


def gap(
    rows: Sequence[Read], own: PartimeSettings, order: str, window: str, variant: Variant
) -> Estimate:
    """Return how far a way is below sequential learning, of the same seeds."""
    return over_seeds([gaps(rows, order, window, variant)], own.confidence, form="+.3f")


def gaps(rows: Sequence[Read], order: str, window: str, variant: Variant) -> Float64:
    """Return the gap of each seed."""
    alone = values(rows, "accuracy", **_chosen(order, window, Variant(1, "paper")))
    found = values(rows, "accuracy", **_chosen(order, window, variant))
    difference: Float64 = alone - found
    return difference


def _chosen(order: str, window: str, variant: Variant) -> dict[str, object]:
    return {
        "stream": order,
        "window": window,
        "stages": variant.stages,
        "gradients": variant.mode,
        "part": "scored",
    }


def _has(row: Read, chosen: dict[str, object]) -> bool:
    return all(row[name] == str(value) for name, value in chosen.items())


def _draw(figure: "Figure", rows: Sequence[Read], own: PartimeSettings) -> None:
    """Draw accuracy over the size of the window, a panel a stream, a line a way."""
    from actionspan.files.figures import COLOURS, INK

    orders = distinct(rows, "stream")
    sizes = distinct(rows, "window")
    panels = figure.subplots(1, len(orders), sharey=True, squeeze=False)[0]
    colours = dict(zip((1, *own.stages), (INK, *COLOURS), strict=False))
    for axes, order in zip(panels, orders, strict=True):
        for variant in variants(own.stages, last_only=True):
            found = np.array(
                [values(rows, "accuracy", **_chosen(order, size, variant)) for size in sizes]
            )
            axes.plot(
                sizes,
                found.mean(axis=1),
                _LOOKS[variant.mode],
                color=colours[variant.stages],
                label=variant.name,
                marker="o",
                markersize=3,
                linewidth=1.4,
            )
        axes.set(title=f"stream {order}", xlabel="window B (samples)")
    panels[0].set_ylabel("accuracy, mean over classes")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7.5)
