"""Learn optical flow continually from frames in pipelines, as in figures 4 and 5 of paper 002."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from actionspan.arrays import Float64
from actionspan.settings import add_settings, from_arguments
from actionspan_papers.estimates import over_seeds
from actionspan_papers.partime.settings import (
    FlowLearningSettings,
    PartimeSettings,
    Variant,
    variants,
)
from actionspan_papers.rows import Row as Read
from actionspan_papers.rows import estimate, values
from actionspan_papers.tables import Row, add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS = {"paper": "-", "inputs": "--"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--frames", type=Path, required=True, help="file of `partime frames`")
    add_outputs(parser, figure=True)
    add_settings(parser, PartimeSettings)
    add_settings(parser, FlowLearningSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a way of learning, rate, seed and window of time, and the figure."""
    own, settings = (
        from_arguments(PartimeSettings, arguments),
        from_arguments(FlowLearningSettings, arguments),
    )
    from actionspan_papers.partime.flow_rows import flow_rows
    from actionspan_papers.partime.footage import Footage

    rows = flow_rows(Footage(arguments.frames), own, settings)
    caption, titles, align = _summary(own, settings)
    write_table(arguments, rows, caption, align, titles, _shown_rows(rows, own))
    write_figures(arguments, lambda figure: _draw(figure, rows, own, settings), (8.4, 3.6))


def ways(stages: Sequence[int]) -> list[Variant]:
    """Return the ways that are compared: `stash` is left to the experiment on gradients."""
    return [way for way in variants(stages, last_only=False) if way.mode != "stash"]


def _summary(
    own: PartimeSettings, settings: FlowLearningSettings
) -> tuple[list[str], dict[str, str], str]:
    """Return the caption, the titles and the alignment of the table to read."""
    tried = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
    caption = [
        f"Unsupervised optical flow from a stream of {settings.pairs} pairs of frames, "
        f"{settings.apart} frames apart (figures 4 and 5): brightness constancy, before a pair is "
        f"learned, in the last quarter of the stream; {own.seeds} seeds, each with another order "
        f"of the videos; means and "
        f"{100 * own.confidence:g} % intervals over seeds.",
        f"Adam; the rates {tried} are tried for every number of stages on videos set aside (their "
        "losses in the columns), and the best of each is scored. The paper's rates were 1e-5 at 1 "
        "and 2 stages and 1e-6 at 4: its curve of 4 stages shows the rate and the stages together.",
        "Difference to DIS: mean distance of the flow to that of OpenCV's DIS, in pixels of the "
        "small frames; a flow of 0 has the mean length of DIS.",
    ]
    titles = {"way": "way", "learning_rate": "rate"}
    titles |= {f"at_{rate:g}": f"loss at {rate:g}" for rate in settings.learning_rates}
    titles |= {"loss": "late loss", "still": "without flow", "ratio": "÷ sequential"}
    titles |= {"likeness": "pattern", "learned": "pattern of what is learned"}
    titles |= {"difference": "difference to DIS", "length": "length of DIS"}
    caption.append(
        "Pattern: correlation with the loss of sequential learning over windows of "
        f"{settings.window_seconds:g} s. The frames alone give every curve much of it; of what is "
        "learned: the same of the loss as a share of that without flow."
    )
    return caption, titles, "lr" + "r" * len(settings.learning_rates) + "rrrrrrr"


def _shown_rows(rows: Sequence[Read], own: PartimeSettings) -> list[Row]:
    """Return a row a way of learning."""
    shown: list[Row] = []
    for variant in ways(own.stages):
        named = {"stages": variant.stages, "gradients": variant.mode}
        late = {**named, "part": "late"}
        of_way = [row for row in rows if all(row[k] == str(v) for k, v in named.items())]
        tried = {
            f"at_{row['learning_rate']}": f"{float(row['loss']):.4f}"
            for row in of_way
            if row["part"] == "choosing"
        }
        best = next(row["learning_rate"] for row in of_way if row["part"] == "late")
        likeness = over_seeds([patterns(rows, variant)], own.confidence, form=".3f")
        shown.append(
            {
                "way": variant.name,
                "learning_rate": best,
                **tried,
                "loss": estimate(rows, "loss", own.confidence, late, ".4f"),
                "still": estimate(rows, "loss_without_flow", own.confidence, late, ".4f"),
                "ratio": over_seeds([ratios(rows, variant)], own.confidence, form=".3f"),
                "likeness": likeness,
                "learned": over_seeds(
                    [patterns(rows, variant, learned=True)], own.confidence, form=".3f"
                ),
                "difference": estimate(rows, "difference_to_dis", own.confidence, late, ".2f"),
                "length": estimate(rows, "dis_length", own.confidence, late, ".2f"),
            }
        )
    return shown


def ratios(rows: Sequence[Read], variant: Variant) -> Float64:
    """Return the late loss of each seed as a multiple of that of sequential learning."""
    own = values(rows, "loss", part="late", stages=variant.stages, gradients=variant.mode)
    alone = values(rows, "loss", part="late", stages=1)
    return own / alone


def patterns(rows: Sequence[Read], variant: Variant, *, learned: bool = False) -> Float64:
    """Return the correlation of each seed's curve with that of sequential learning.

    `learned` takes the loss as a share of that without any flow: what the frames do to every curve
    alike is then gone.
    """
    seeds = sorted({row["seed"] for row in rows if row["part"] == "scored"}, key=int)
    found = []
    for seed in seeds:
        curves = []
        for way in (Variant(1, "paper"), variant):
            chosen = {"stages": way.stages, "gradients": way.mode, "seed": seed, "part": "scored"}
            curve = values(rows, "loss", **chosen)
            curves.append(curve / values(rows, "loss_without_flow", **chosen) if learned else curve)
        alone, own = curves
        enough = len(own) > 2 and own.std() > 0 and alone.std() > 0
        found.append(float(np.corrcoef(alone, own)[0, 1]) if enough else np.nan)
    return np.array(found)


def _draw(
    figure: "Figure", rows: Sequence[Read], own: PartimeSettings, settings: FlowLearningSettings
) -> None:
    """Draw the loss over time of the first seed, and the losses of all rates on the right."""
    from actionspan.files.figures import COLOURS, INK

    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1])
    colours = dict(zip((1, *own.stages), (INK, *COLOURS), strict=False))
    for variant in ways(own.stages):
        chosen = {"stages": variant.stages, "gradients": variant.mode}
        look = _LOOKS[variant.mode]
        colour = colours[variant.stages]
        curve = {"part": "scored", "seed": 1, **chosen}
        left.plot(
            values(rows, "seconds", **curve),
            values(rows, "loss", **curve),
            look,
            color=colour,
            label=variant.name,
            linewidth=1.4,
        )
        rates = values(rows, "learning_rate", part="choosing", **chosen)
        losses = values(rows, "loss", part="choosing", **chosen)
        right.plot(rates, losses, look, color=colour, marker="o", markersize=3, linewidth=1.4)
    title = f"loss over windows of {settings.window_seconds:g} s (seed 1)"
    left.set(title=title, xlabel="seconds of the stream", ylabel="brightness constancy")
    right.set(title="one sweep for all", xlabel="step size", xscale="log")
    tried = list(settings.learning_rates)
    right.set_xticks(tried, [f"{rate:g}" for rate in tried])
    right.minorticks_off()
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7.5)
