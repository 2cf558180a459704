"""Learn optical flow continually from frames in pipelines, as in figures 4 and 5 of paper 002."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.estimates import over_seeds
from actionspan_papers.experiments import Experiment, Row, Table, over_rows, values, where
from actionspan_papers.partime.settings import (
    FlowLearningSettings,
    PartimeSettings,
    Variant,
    variants,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_LOOKS = {"paper": "-", "inputs": "--"}


def _rows(
    arguments: argparse.Namespace, own: PartimeSettings, settings: FlowLearningSettings
) -> list[Row]:
    from actionspan_papers.partime.flow_rows import flow_rows
    from actionspan_papers.partime.footage import Footage

    return flow_rows(Footage(arguments.frames), own, settings)


def ways(stages: Sequence[int]) -> list[Variant]:
    """Return the ways that are compared: `stash` is left to the experiment on gradients."""
    return [way for way in variants(stages, last_only=False) if way.mode != "stash"]


def _table(
    rows: "DataFrame", _: argparse.Namespace, own: PartimeSettings, settings: FlowLearningSettings
) -> Table:
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
    forms = {f"at_{rate:g}": ".4f" for rate in settings.learning_rates}
    return Table(caption=caption, titles=titles, rows=_shown(rows, own), forms=forms)


def _shown(rows: "DataFrame", own: PartimeSettings) -> list[Row]:
    """Return a row a way of learning."""
    shown: list[Row] = []
    level = own.confidence
    for variant in ways(own.stages):
        of_way = _runs(rows, variant)
        late, chosen = where(of_way, part="late"), where(of_way, part="choosing")
        tried = zip(chosen["learning_rate"], chosen["loss"], strict=True)
        of_seeds = {
            "ratio": ratios(rows, variant),
            "likeness": patterns(rows, variant),
            "learned": patterns(rows, variant, learned=True),
        }
        shown.append(
            {
                "way": variant.name,
                "learning_rate": late["learning_rate"].iloc[0],
                **{f"at_{rate:g}": loss for rate, loss in tried},
                "loss": over_rows(late, "loss", level, ".4f"),
                "still": over_rows(late, "loss_without_flow", level, ".4f"),
                **{name: over_seeds([own], level, form=".3f") for name, own in of_seeds.items()},
                "difference": over_rows(late, "difference_to_dis", level, ".2f"),
                "length": over_rows(late, "dis_length", level, ".2f"),
            }
        )
    return shown


def _runs(rows: "DataFrame", way: Variant) -> "DataFrame":
    return where(rows, stages=way.stages, gradients=way.mode)


def ratios(rows: "DataFrame", variant: Variant) -> Float64:
    """Return the late loss of each seed as a multiple of that of sequential learning."""
    alone = values(rows, "loss", part="late", stages=1)
    return values(_runs(rows, variant), "loss", part="late") / alone


def patterns(rows: "DataFrame", variant: Variant, *, learned: bool = False) -> Float64:
    """Return the correlation of each seed's curve with that of sequential learning.

    `learned` takes the loss as a share of that without any flow: what the frames do to every curve
    alike is then gone.
    """
    scored = where(rows, part="scored")
    found = []
    for seed in sorted(scored["seed"].unique()):
        curves = []
        for way in (Variant(1, "paper"), variant):
            windows = where(_runs(scored, way), seed=seed)
            curve, still = values(windows, "loss"), values(windows, "loss_without_flow")
            curves.append(curve / still if learned else curve)
        alone, own = curves
        enough = len(own) > 2 and own.std() > 0 and alone.std() > 0
        found.append(float(np.corrcoef(alone, own)[0, 1]) if enough else np.nan)
    return np.array(found)


def _draw(
    figure: "Figure",
    rows: "DataFrame",
    _: argparse.Namespace,
    own: PartimeSettings,
    settings: FlowLearningSettings,
) -> None:
    """Draw the loss over time of the first seed, and the losses of all rates on the right."""
    from actionspan.files.figures import COLOURS, INK

    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1])
    colours = dict(zip((1, *own.stages), (INK, *COLOURS), strict=False))
    for variant in ways(own.stages):
        runs = _runs(rows, variant)
        curve, tried = where(runs, part="scored", seed=1), where(runs, part="choosing")
        look: dict[str, Any] = {"linestyle": _LOOKS[variant.mode], "color": colours[variant.stages]}
        look |= {"linewidth": 1.4}
        left.plot(curve["seconds"], curve["loss"], label=variant.name, **look)
        right.plot(tried["learning_rate"], tried["loss"], marker="o", markersize=3, **look)
    title = f"loss over windows of {settings.window_seconds:g} s (seed 1)"
    left.set(title=title, xlabel="seconds of the stream", ylabel="brightness constancy")
    right.set(title="one sweep for all", xlabel="step size", xscale="log")
    tried = list(settings.learning_rates)
    right.set_xticks(tried, [f"{rate:g}" for rate in tried])
    right.minorticks_off()
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7.5)


EXPERIMENT = Experiment(
    inputs={"frames": "file of `partime frames`"},
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(8.4, 3.6),
    settings=(PartimeSettings, FlowLearningSettings),
    forms={"difference_to_dis": ".4f", "dis_length": ".4f"},
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
