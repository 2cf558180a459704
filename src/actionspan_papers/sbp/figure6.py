"""Draw figure 6 of paper 004: samplers, and step sizes of the encoder."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.estimates import Estimate
from actionspan_papers.sbp.gradients import add_snippets
from actionspan_papers.sbp.settings import DetectionSettings, SbpSettings, TuningSettings
from actionspan_papers.sbp.table4 import above, interval_words
from actionspan_papers.tables import Row, add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from actionspan_papers.sbp.online_rows import Run
    from actionspan_papers.sbp.trainings import Measured, Training

HEAD: Literal["attention"] = "attention"
"""As in the paper, which sweeps with LSTR."""
TITLES = {
    "sampler": "sampler",
    "encoder_share": "encoder's step size ÷ the head's",
    "precision": "per-frame mAP",
    "above_uniform": "above uniform random",
    "above_first": "above the first share",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_snippets(parser)
    add_outputs(parser, figure=True)
    add_settings(parser, SbpSettings)
    add_settings(parser, TuningSettings)
    add_settings(parser, DetectionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a sampler and step size, and draw them."""
    own = from_arguments(SbpSettings, arguments)
    tuning = from_arguments(TuningSettings, arguments)
    compared = from_arguments(DetectionSettings, arguments)
    from actionspan_papers.sbp.online_rows import measure_online
    from actionspan_papers.sbp.trainings import swept_trainings

    trainings = swept_trainings(compared)
    runs: list[Run] = [(HEAD, training) for training in trainings]
    measured = measure_online(arguments.snippets, arguments.annotations, runs, own, tuning)
    found = {training: values for (_, training), values in measured.items()}
    videos = next(iter(found.values())).videos
    caption = [
        "Figure 6 of paper 004: per-frame mean average precision of online detection, in percent, "
        f"with SBP at r = {compared.figure_ratio:g}. Causal attention over EfficientNet-Lite0 on "
        f"pictures of {tuning.input_size} pixels, {tuning.epochs} epochs, step size of the head "
        f"{tuning.temporal_rate:g}. {videos} validation videos.",
        interval_words(own),
    ]
    rows = table_rows(found, own)
    write_table(arguments, rows, caption, "lrrrr", TITLES)
    write_figures(arguments, lambda figure: draw(figure, rows), (5.6, 3.7))


def table_rows(found: "Mapping[Training, Measured]", own: SbpSettings) -> list[Row]:
    """Return the rows: differences to uniform random sampling, and to the first step size."""
    rows: list[Row] = []
    for training, measured in found.items():
        base = {(each.sampler, each.encoder_share): value for each, value in found.items()}
        sampler, share = training.sampler, training.encoder_share
        first = next(iter(found)).encoder_share
        row: dict[str, str | Estimate] = {
            "sampler": sampler,
            "encoder_share": f"{share:g}",
            "seeds": str(len(measured.seeds)),
            "precision": measured.estimate(own.confidence),
            "above_uniform": above(measured, base["uniform_random", share], own.confidence),
            "above_first": above(measured, base[sampler, first], own.confidence),
        }
        rows.append(row)
    return rows


def draw(figure: "Figure", rows: Sequence[Row]) -> None:
    """Draw a line a sampler, its intervals as bars."""
    from actionspan.files.figures import COLOURS

    axes = figure.subplots()
    samplers = dict.fromkeys(str(row["sampler"]) for row in rows)
    for number, (colour, sampler) in enumerate(zip(COLOURS, samplers, strict=False)):
        own = [row for row in rows if row["sampler"] == sampler]
        places = [float(str(row["encoder_share"])) * (1 + 0.06 * (number - 1)) for row in own]
        cells = [row["precision"] for row in own]
        values = [(c.value, c.low, c.high) for c in cells if isinstance(c, Estimate)]
        # ends are rounded, so that an interval of one point may end a little before it
        below = [max(0.0, value - low) for value, low, _ in values]
        over = [max(0.0, high - value) for value, _, high in values]
        axes.errorbar(
            places,
            [value for value, *_ in values],
            [below, over],
            fmt="o-",
            markersize=4,
            linewidth=1.4,
            elinewidth=0.8,
            color=colour,
            label=sampler.replace("_", " "),
        )
    shares = sorted({float(str(row["encoder_share"])) for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(shares, [f"{share:g}" for share in shares])
    axes.minorticks_off()
    axes.set(
        title="Samplers and step sizes",
        xlabel="step size of the encoder ÷ that of the head",
        ylabel="per-frame mAP (%)",
    )
    axes.legend(frameon=False, fontsize=7.5)
