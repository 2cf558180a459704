"""Compare the gradients that samplers keep with the full gradient, on real snippets."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.estimates import Estimate
from actionspan_papers.rows import Row as Read
from actionspan_papers.rows import distinct, estimate, values
from actionspan_papers.sbp.settings import GradientSettings, SbpSettings
from actionspan_papers.tables import Row, add_outputs, write_figures, write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAMPLING, DEPTH = "sampling", "depth"
QUANTITIES: Mapping[str, str] = {
    "activations": "activations",
    "activation_gradients": "gradients of activations",
    "parameter_gradients": "gradients of parameters",
}
"""What snippets have in a block of the encoder, and what it is called."""
COLUMNS = (
    *("part", "video", "snippets", "sampler", "keep_ratio", "kept", "cosine", "error"),
    *("block", "quantity", "neighbours", "distant"),
)
"""Of the table; a row of the part `sampling` has no block, one of the part `depth` no sampler."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_snippets(parser)
    add_outputs(parser, figure=True)
    add_settings(parser, SbpSettings)
    add_settings(parser, GradientSettings)


def add_snippets(parser: argparse.ArgumentParser) -> None:
    """Add the flags of what is learned from."""
    parser.add_argument(
        "--snippets", type=Path, nargs="+", required=True, help="stores of `finetune store`"
    )
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")


def run(arguments: argparse.Namespace) -> None:
    """Write a row a video, sampler and keep ratio, a row a video, block and quantity; and draw."""
    own = from_arguments(SbpSettings, arguments)
    settings = from_arguments(GradientSettings, arguments)
    from actionspan_papers.sbp.gradients_rows import gradient_rows

    rows = gradient_rows(arguments.snippets, arguments.annotations, settings)
    caption, titles, align = _summary(rows, own.confidence, settings)
    write_table(arguments, rows, caption, align, titles, _shown_rows(rows, own.confidence))
    write_figures(arguments, lambda figure: _draw(figure, rows), (8.4, 3.9))


def _summary(
    rows: Sequence[Read], confidence: float, settings: GradientSettings
) -> tuple[list[str], dict[str, str], str]:
    """Return the caption, the titles and the alignment of the table to read."""
    lengths = [int(row["snippets"]) for row in rows]
    videos = len(distinct(rows, "video"))
    caption = [
        "Gradient of EfficientNet-Lite0 from a part of a video's snippets, weighted by 1/π, beside "
        "the gradient from all of them: the mean cosine, and the mean squared error as a share of "
        f"the full gradient's squared length. {settings.draws:,} draws a video of each sampler "
        "(`fixed` has one); public weights, norms folded, pictures of "
        f"{settings.input_size} pixels, an MTN trained for {settings.epochs} epochs on features of "
        f"the untuned encoder. {videos} training videos of {min(lengths)} to {max(lengths)} "
        f"snippets; means and {100 * confidence:g} % intervals over videos (Student's t).",
        *(_depth_line(rows, quantity, confidence) for quantity in QUANTITIES),
    ]
    titles = {"sampler": "sampler"}
    for ratio in distinct(_of(rows, SAMPLING), "keep_ratio"):
        titles |= {f"cosine_{ratio}": f"cosine, r = {ratio}"}
    for ratio in distinct(_of(rows, SAMPLING), "keep_ratio"):
        titles |= {f"error_{ratio}": f"error, r = {ratio}"}
    return caption, titles, "l" + "r" * (len(titles) - 1)


def _depth_line(rows: Sequence[Read], quantity: str, confidence: float) -> str:
    blocks = distinct(_of(rows, DEPTH), "block")
    ends = [
        f"{end} {estimate(rows, 'neighbours', confidence, _at(quantity, block), '.2f')}"
        for block, end in ((blocks[0], "the stem"), (blocks[-1], "the head"))
    ]
    far = np.nanmean(values(rows, "distant", part=DEPTH, quantity=quantity))
    return (
        f"Cosine of neighbouring snippets' {QUANTITIES[quantity]}: in {' and in '.join(ends)}; of "
        f"snippets half a video or more apart {far:.2f} in the mean of all blocks."
    )


def _at(quantity: str, block: str) -> dict[str, object]:
    return {"part": DEPTH, "quantity": quantity, "block": block}


def _of(rows: Sequence[Read], part: str) -> list[Read]:
    return [row for row in rows if row["part"] == part]


def _shown_rows(rows: Sequence[Read], confidence: float) -> list[Row]:
    """Return a row a sampler, a column a measure and keep ratio."""
    sampling = _of(rows, SAMPLING)
    shown: list[Row] = []
    for sampler in distinct(sampling, "sampler"):
        row: dict[str, str | Estimate] = {"sampler": sampler}
        for column in ("cosine", "error"):
            for ratio in distinct(sampling, "keep_ratio"):
                chosen: dict[str, object] = {"sampler": sampler, "keep_ratio": ratio}
                row[f"{column}_{ratio}"] = estimate(sampling, column, confidence, chosen, ".2f")
        shown.append(row)
    return shown


def _draw(figure: "Figure", rows: Sequence[Read]) -> None:
    """Draw cosines over keep ratios, a line a sampler, and cosines of snippets over depth."""
    left, right = figure.subplots(1, 2)
    _draw_samplers(left, _of(rows, SAMPLING))
    _draw_depth(right, _of(rows, DEPTH))


def _draw_samplers(axes: "Axes", rows: Sequence[Read]) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter

    from actionspan.files.figures import COLOURS

    ratios = sorted(map(float, distinct(rows, "keep_ratio")))
    for colour, sampler in zip(COLOURS, distinct(rows, "sampler"), strict=False):
        each = [values(rows, "cosine", sampler=sampler, keep_ratio=f"{r:g}") for r in ratios]
        means = [float(np.nanmean(found)) for found in each]
        axes.plot(ratios, means, "o-", markersize=3, color=colour, label=sampler.replace("_", " "))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ratios))
    axes.set_xticklabels([f"{ratio:g}" for ratio in ratios])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(title="Sampled and full gradient", xlabel="keep ratio r", ylabel="cosine")
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, fontsize=7.5, loc="lower right")


def _draw_depth(axes: "Axes", rows: Sequence[Read]) -> None:
    from actionspan.files.figures import COLOURS

    blocks = distinct(rows, "block")
    for colour, (quantity, name) in zip(COLOURS, QUANTITIES.items(), strict=False):
        for column, line in (("neighbours", "-"), ("distant", ":")):
            each = [values(rows, column, quantity=quantity, block=block) for block in blocks]
            means = [float(np.nanmean(found)) for found in each]
            label = name if column == "neighbours" else None
            axes.plot(range(len(blocks)), means, line, color=colour, label=label)
    axes.set_xticks(range(len(blocks)), blocks, fontsize=7, rotation=90)
    axes.set(title="Snippets of a video", xlabel="block of the encoder", ylabel="cosine")
    axes.set_ylim(top=1.45)  # room for the legend
    axes.legend(
        frameon=False, fontsize=7.5, loc="upper left", title="neighbours (dotted: far apart)"
    )
