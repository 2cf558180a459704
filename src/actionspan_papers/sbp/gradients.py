"""Compare the gradients that samplers keep with the full gradient, on real snippets."""

from collections.abc import Iterator

import numpy as np

from actionspan_papers.experiments import Cell, Experiment, Row, Table, over_rows, values, where
from actionspan_papers.kinds import Axes, DataFrame, Figure, Flags
from actionspan_papers.sbp.settings import (
    DEPTH,
    QUANTITIES,
    SAMPLING,
    GradientSettings,
    SbpSettings,
)
from actionspan_papers.sbp.trainings import SNIPPETS


def _rows(arguments: Flags, _: SbpSettings, settings: GradientSettings) -> Iterator[Row]:
    from actionspan_papers.sbp.draws import gradient_rows

    return gradient_rows(arguments.snippets, arguments.annotations, settings)


def _table(frame: DataFrame, _: Flags, own: SbpSettings, settings: GradientSettings) -> Table:
    """Return a row a sampler, a column a measure and keep ratio."""
    level, lengths = own.confidence, frame["snippets"]
    caption = [
        "Gradient of EfficientNet-Lite0 from a part of a video's snippets, weighted by 1/π, and "
        "the gradient from all of them: the mean cosine, and the mean squared error as a share of "
        f"the full gradient's squared length. {settings.draws:,} draws a video of each sampler "
        "(`fixed` has one); public weights, norms folded, images of "
        f"{settings.input_size} pixels, an MTN trained for {settings.epochs} epochs on features of "
        f"the untuned encoder. {frame['video'].nunique()} training videos of {lengths.min()} to "
        f"{lengths.max()} snippets; means and {100 * level:g} % intervals over videos (Student's "
        "t).",
        *(_depth_line(where(frame, part=DEPTH), quantity, level) for quantity in QUANTITIES),
    ]
    sampling = where(frame, part=SAMPLING)
    measures = {
        f"{column}_{ratio:g}": (column, ratio)
        for column in ("cosine", "error")
        for ratio in sampling["keep_ratio"].unique()
    }
    titles = {"sampler": "sampler"}
    titles |= {key: f"{column}, r = {ratio:g}" for key, (column, ratio) in measures.items()}
    rows: list[Row] = []
    for sampler in sampling["sampler"].unique():
        row: dict[str, Cell] = {"sampler": sampler}
        for key, (column, ratio) in measures.items():
            chosen = {"sampler": sampler, "keep_ratio": ratio}
            row[key] = over_rows(sampling, column, level, ".2f", **chosen)
        rows.append(row)
    return Table(caption=caption, titles=titles, rows=rows)


def _depth_line(depth: DataFrame, quantity: str, level: float) -> str:
    own = where(depth, quantity=quantity)
    blocks = own["block"].unique()
    stem, head = (over_rows(own, "neighbours", level, ".2f", block=blocks[end]) for end in (0, -1))
    return (
        f"Cosine of neighbouring snippets' {QUANTITIES[quantity]}: in the stem {stem} and in the "
        f"head {head}; of snippets half a video or more apart {own['distant'].mean():.2f} in the "
        "mean of all blocks."
    )


def _draw(figure: Figure, frame: DataFrame, *_: object) -> None:
    """Draw cosines over keep ratios, a line a sampler, and cosines of snippets over depth."""
    left, right = figure.subplots(1, 2)
    _draw_samplers(left, where(frame, part=SAMPLING))
    _draw_depth(right, where(frame, part=DEPTH))


def _draw_samplers(axes: Axes, sampling: DataFrame) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter

    from actionspan.storage.figures import COLOURS

    ratios = sorted(sampling["keep_ratio"].unique())
    for colour, sampler in zip(COLOURS, sampling["sampler"].unique(), strict=False):
        each = [values(sampling, "cosine", sampler=sampler, keep_ratio=ratio) for ratio in ratios]
        means = [float(np.nanmean(found)) for found in each]
        axes.plot(ratios, means, "o-", markersize=3, color=colour, label=sampler.replace("_", " "))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ratios))
    axes.set_xticklabels([f"{ratio:g}" for ratio in ratios])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(title="Sampled and full gradient", xlabel="keep ratio r", ylabel="cosine")
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, fontsize=7.5, loc="lower right")


def _draw_depth(axes: Axes, depth: DataFrame) -> None:
    from actionspan.storage.figures import COLOURS

    blocks = depth["block"].unique()
    for colour, (quantity, name) in zip(COLOURS, QUANTITIES.items(), strict=False):
        for column, line in (("neighbours", "-"), ("distant", ":")):
            each = [values(depth, column, quantity=quantity, block=block) for block in blocks]
            means = [float(np.nanmean(found)) for found in each]
            label = name if column == "neighbours" else None
            axes.plot(range(len(blocks)), means, line, color=colour, label=label)
    axes.set_xticks(range(len(blocks)), blocks, fontsize=7, rotation=90)
    axes.set(title="Snippets of a video", xlabel="block of the encoder", ylabel="cosine")
    axes.set_ylim(top=1.45)  # room for the legend
    axes.legend(
        frameon=False, fontsize=7.5, loc="upper left", title="neighbours (dotted: far apart)"
    )


EXPERIMENT = Experiment(
    inputs=SNIPPETS,
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(8.4, 3.9),
    settings=(SbpSettings, GradientSettings),
    repeatable=True,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
