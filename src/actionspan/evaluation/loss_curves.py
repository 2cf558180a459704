"""Figure 10 of paper 001 for our runs: the validation loss over epochs, mean and range of seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from actionspan.errors import InputError
from actionspan.evaluation.activitynet import Floats
from actionspan.evaluation.video_scores import by_method
from actionspan.storage import read_tsv, write_tsv
from actionspan.style import COLOURS, house_style, save_figure, spread_labels

LOSS_COLUMNS = (
    "model",
    "epoch",
    "seeds",
    "validation_loss",
    "validation_loss_low",
    "validation_loss_high",
)

LossBand = tuple[Floats, Floats, Floats, Floats]
"""(E,) epochs, mean, lowest and highest loss of the seeds."""


def read_losses(paths: Sequence[Path]) -> dict[str, Floats]:
    """Read logs of training, `…/{model}[-seedN]/{run}/log.tsv`: (S, E) validation losses by model.

    They are NaN where there are no validation videos.

    Raises:
        InputError: A file is not a log or has another number of epochs than the model's first
            seed, its path names no model, or another one is of the same model and seed.
    """
    form = "results/temporal/{model}/{run}/log.tsv"
    names = [path.resolve().parent.parent.name for path in paths]
    losses = {}
    for model, seeds in by_method(names, paths, form).items():
        files = list(seeds.values())
        curves = [_losses(path) for path in files]
        for path, curve in zip(files, curves, strict=True):
            if len(curve) != len(curves[0]):
                raise InputError(f"{path}: {len(curve)} epochs, {files[0]} has {len(curves[0])}")
        losses[model] = np.array(curves)
    return losses


def _losses(path: Path) -> list[float]:
    rows = read_tsv(path)
    curve = []
    for number, row in enumerate(rows, start=2):
        try:
            curve.append(float(row["validation_loss"]))
        except (KeyError, ValueError):
            raise InputError(f"{path}: row {number}: no number 'validation_loss'") from None
    if not curve:
        raise InputError(f"{path}: no epoch")
    return curve


def loss_rows(losses: Mapping[str, Floats]) -> list[tuple[str, int, int, str, str, str]]:
    """Return the rows of loss_curves.tsv: of each model and epoch the mean and range of seeds."""
    return [
        (
            model,
            epoch,
            len(of),
            repr(float(at.mean())),
            repr(float(at.min())),
            repr(float(at.max())),
        )
        for model, of in losses.items()
        for epoch, at in enumerate(of.T, start=1)
    ]


def write_loss_curves(path: Path, losses: Mapping[str, Floats]) -> None:
    """Write loss_curves.tsv."""
    write_tsv(path, LOSS_COLUMNS, loss_rows(losses))


def read_loss_curves(path: Path) -> dict[str, LossBand]:
    """Read loss_curves.tsv.

    Raises:
        InputError: The file is missing, a row is not of this table or there is none.
    """
    points: dict[str, list[list[float]]] = {}
    for number, row in enumerate(read_tsv(path), start=2):
        try:
            point = [float(row[column]) for column in ("epoch", *LOSS_COLUMNS[3:])]
            points.setdefault(row["model"], []).append(point)
        except (KeyError, ValueError):
            raise InputError(
                f"{path}: row {number}: not a row of {', '.join(LOSS_COLUMNS)}"
            ) from None
    if not points:
        raise InputError(f"{path}: no row")
    curves = {}
    for model, rows in points.items():
        epochs, mean, low, high = np.array(rows).T
        curves[model] = epochs, mean, low, high
    return curves


def draw_loss_curves(path: Path, curves: Mapping[str, LossBand]) -> None:
    """Draw the mean of each model as a line named at its end, the range of seeds as a band.

    A model with an epoch without a validation loss is left out, and the figure says so.

    Args:
        path: An .svg or .png file.
        curves: What `read_loss_curves` returned.
    """
    drawn = {model: band for model, band in curves.items() if np.isfinite(band).all()}
    without = [model for model in curves if model not in drawn]
    with house_style():
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
        figure = Figure(figsize=(6.2, 3.7), layout=layout)
        axes = figure.subplots()
        title = "Validation loss: mean, and from lowest to highest seed"
        axes.set(title=title, xlabel="epoch")
        if without:
            axes.set_xlabel(f"epoch\nno validation loss in some epoch: {', '.join(without)}")
        if drawn:
            _draw_bands(axes, drawn)
        save_figure(figure, path)


def _draw_bands(axes: Axes, curves: Mapping[str, LossBand]) -> None:
    """Draw the bands and lines of one model or more, all of their losses finite."""
    last = max(float(epochs[-1]) for epochs, *_ in curves.values())
    bottom = min(float(low.min()) for _, _, low, _ in curves.values())
    top = max(float(high.max()) for *_, high in curves.values())
    margin = 0.05 * (top - bottom) or 0.05
    axes.set_xlim(1 if last > 1 else 0, last)
    axes.set_ylim(bottom - margin, top + margin)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    colours = {model: COLOURS[index % len(COLOURS)] for index, model in enumerate(curves)}
    for model, (epochs, mean, low, high) in curves.items():
        axes.fill_between(epochs, low, high, color=colours[model], alpha=0.15, linewidth=0)
        axes.plot(epochs, mean, color=colours[model], linewidth=1.7, zorder=3)
    # heights in parts of the axes, where `spread_labels` keeps them above the lower edge
    height = top - bottom + 2 * margin
    ends = {model: (float(c[1][-1]) - bottom + margin) / height for model, c in curves.items()}
    for model, place in spread_labels(ends, 0.068).items():
        axes.annotate(
            model,
            xy=(float(curves[model][0][-1]), float(curves[model][1][-1])),
            xytext=(1.05, place),
            textcoords="axes fraction",
            va="center",
            color=colours[model],
            weight="bold",
            arrowprops={
                "arrowstyle": "-",
                "color": colours[model],
                "linewidth": 0.7,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 2,
            },
        )
