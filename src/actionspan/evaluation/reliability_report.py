"""What scores mean: the rows of a table, a page of Markdown and a figure."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from actionspan.errors import counted
from actionspan.evaluation.score_quality import (
    ScoreBin,
    ScoredProposals,
    calibration_errors,
    rank_correlation,
    summarize,
)
from actionspan.files.figures import COLOURS, INK, QUIET, house_style, save_figure, spread_labels
from actionspan.files.markdown import markdown_table

COLUMNS = (
    *("bin", "proposals", "lowest_score", "highest_score", "mean_score", "mean_tiou"),
    *("share@0.5", "share@0.7", "first@0.5", "first@0.7"),
    *("error_tiou", "error_0.5", "rank_correlation"),
)
CURVES = (("tIoU ≥ 0.5", COLOURS[0]), ("mean tIoU", COLOURS[2]), ("tIoU ≥ 0.7", COLOURS[1]))

Cell = str | int | float


def table_rows(scored: ScoredProposals, bins: Sequence[ScoreBin]) -> list[list[Cell]]:
    """Return a row for all proposals and a row for each bin, as the cells of `COLUMNS`.

    The errors of a bin are its own |mean score - mean tIoU| and |mean score - share@0.5|; those
    of all are their means over the proposals, the expected calibration errors. An undefined value
    is an empty cell.
    """
    if not bins:
        return [["all", 0, *[""] * (len(COLUMNS) - 2)]]
    errors = calibration_errors(scored, bins)
    everything = summarize(scored, np.arange(len(scored.scores)))
    correlation = rank_correlation(scored.scores, scored.best_tiou)
    rows = [
        [
            "all",
            *_cells(everything),
            *(errors or ("", "")),
            "" if correlation is None else correlation,
        ]
    ]
    for number, row in enumerate(bins, start=1):
        own = (abs(row.mean_score - row.mean_tiou), abs(row.mean_score - row.share[0]))
        rows.append([str(number), *_cells(row), *(own if errors else ("", "")), ""])
    return rows


def _cells(row: ScoreBin) -> list[Cell]:
    means = row.mean_score, row.mean_tiou
    return [row.proposals, row.lowest, row.highest, *means, *row.share, *row.first]


def reliability_markdown(
    scored: ScoredProposals, bins: Sequence[ScoreBin], method: str, subset: str
) -> str:
    """Return the page: what is counted, how far the scores can be trusted, and the bins."""
    lines = [
        f"# What the scores of {method} mean",
        "",
        f"All {counted(len(scored.scores), 'proposal')} of the {counted(scored.videos, 'video')} "
        f"of subset {subset}, also of those without an instance, sorted by score into "
        f"{len(bins)} bins of equally many. tIoU is that with the best instance of the video. "
        "First: the share that is the first to find its instance at tIoU 0.5, which leaves out "
        "those that find it again.",
        "",
    ]
    if not bins:
        return "\n".join([*lines, "There are no proposals."]) + "\n"
    correlation = rank_correlation(scored.scores, scored.best_tiou)
    order = "not defined, because all scores or all tIoU are equal."
    if correlation is not None:
        order = f"**{correlation:.3f}** (1: the scores sort the proposals by tIoU; 0: no relation)."
    errors = calibration_errors(scored, bins)
    if errors:
        scale = (
            f"the mean score is {np.mean(scored.scores):.3f}, the mean tIoU "
            f"{np.mean(scored.best_tiou):.3f}. Read as the tIoU to expect, scores are off by "
            f"**{errors[0]:.3f}** on average over the bins; as the chance of tIoU ≥ 0.5, by "
            f"**{errors[1]:.3f}** (expected calibration error)."
        )
    else:
        scale = (
            f"scores lie between {scored.scores.min():.4g} and {scored.scores.max():.4g}; outside "
            "0…1 they cannot be read as a tIoU or a chance, and there is no calibration error."
        )
    lines += [f"Order: Spearman's rank correlation of score and tIoU is {order}", ""]
    lines += [f"Scale: {scale}", ""]
    titles = ["scores", "proposals", "mean score", "mean tIoU"]
    titles += ["tIoU ≥ 0.5", "tIoU ≥ 0.7", "first at 0.5"]
    rows = [
        [
            f"{row.lowest:.4g} – {row.highest:.4g}",
            f"{row.proposals:,}",
            f"{row.mean_score:.4g}",
            f"{row.mean_tiou:.3f}",
            *(f"{100 * share:.1f} %" for share in (*row.share, row.first[0])),
        ]
        for row in reversed(bins)
    ]
    return "\n".join([*lines, *markdown_table("lrrrrrr", titles, rows)]) + "\n"


def draw_reliability(
    path: Path, scored: ScoredProposals, bins: Sequence[ScoreBin], method: str
) -> None:
    """Draw quality over score with a histogram of the scores, and quality by bins of proposals.

    Args:
        path: An .svg or .png file.
        scored: The proposals.
        bins: What `score_bins` returned.
        method: Its name, for the title.
    """
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, wspace=0.05)
        figure = Figure(figsize=(9.0, 4.4), layout=layout)
        panels = figure.subplot_mosaic(
            [["score", "order"], ["counts", "order"]], height_ratios=[3.2, 1]
        )
        if bins:
            panels["counts"].sharex(panels["score"])
            _over_scores(panels["score"], scored, bins)
            _histogram(panels["counts"], scored)
            _over_order(panels["order"], bins)
        else:
            for axes in panels.values():
                axes.text(0.5, 0.5, "no proposals", transform=axes.transAxes, ha="center")
        panels["score"].set_title("Quality of the proposals of a score")
        panels["order"].set_title("Quality from the worst score to the best")
        figure.suptitle(
            f"{method}: {len(scored.scores):,} proposals in {len(bins)} bins of equally many",
            x=0.01, ha="left", fontsize=9, color=QUIET,
        )  # fmt: skip
        save_figure(figure, path)


def _draw_curves(axes: Axes, places: Sequence[float], bins: Sequence[ScoreBin]) -> dict[str, float]:
    """Draw the curves that both panels show; return where each ends."""
    heights = (
        [row.share[0] for row in bins],
        [row.mean_tiou for row in bins],
        [row.share[1] for row in bins],
    )
    for (_, colour), ys in zip(CURVES, heights, strict=True):
        axes.plot(places, ys, "o-", color=colour, lw=1.5, ms=3.5, clip_on=False, zorder=3)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    return {name: ys[-1] for (name, _), ys in zip(CURVES, heights, strict=True)}


def _over_scores(axes: Axes, scored: ScoredProposals, bins: Sequence[ScoreBin]) -> None:
    _draw_curves(axes, [row.mean_score for row in bins], bins)
    axes.set_ylim(0, 1)
    axes.tick_params(labelbottom=False)
    if scored.is_share:
        right = min(1.0, np.ceil(10 * float(scored.scores.max()) + 1e-9) / 10)
        axes.set_xlim(0, right)
        axes.plot([0, right], [0, right], color=INK, lw=0.8, ls=(0, (2, 2)), zorder=2)
        axes.text(
            0.98 * right, 0.98 * right, "as the score says", ha="right", va="bottom",
            rotation=45, rotation_mode="anchor", transform_rotates_text=True,
            fontsize=7.5, color=QUIET,
        )  # fmt: skip


def _histogram(axes: Axes, scored: ScoredProposals) -> None:
    low, high = axes.get_xlim()
    counts, edges = np.histogram(scored.scores, bins=40, range=(low, high))
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=QUIET, lw=0, alpha=0.6)
    axes.set(xlabel="score", ylabel="proposals")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(visible=False, axis="x")


def _over_order(axes: Axes, bins: Sequence[ScoreBin]) -> None:
    places = list(range(1, len(bins) + 1))
    ends = _draw_curves(axes, places, bins)
    firsts = [row.first[0] for row in bins]
    axes.plot(places, firsts, color=QUIET, lw=1.3, ls=(0, (4, 1.6)), clip_on=False, zorder=3)
    axes.set(ylim=(0, 1), xlabel="bin of scores", xticks=places)
    axes.set_xlim(0.7, max(len(bins), 2))
    ends["first at 0.5"] = firsts[-1]
    colours = {**dict(CURVES), "first at 0.5": INK}
    for name, height in spread_labels(ends, 0.05).items():
        axes.annotate(
            name, (1.04, height), xycoords="axes fraction",
            va="center_baseline", color=colours[name], fontsize=8,
        )  # fmt: skip
