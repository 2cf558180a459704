"""Figure 10 of paper 001 for our runs: the validation loss over epochs, mean and range of seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from actionspan.errors import InputError
from actionspan.evaluation.activitynet import Floats
from actionspan.files.storage import read_tsv, write_tsv
from actionspan.papers.curves import Band, draw_curves, read_bands
from actionspan.papers.mtn.video_scores import by_method

LOSS_COLUMNS = (
    "model",
    "epoch",
    "seeds",
    "validation_loss",
    "validation_loss_low",
    "validation_loss_high",
)


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


def read_loss_curves(path: Path) -> dict[str, Band]:
    """Read loss_curves.tsv.

    Raises:
        InputError: The file is missing, a row is not of this table or there is none.
    """
    return read_bands(path, LOSS_COLUMNS)


def draw_loss_curves(path: Path, curves: Mapping[str, Band]) -> None:
    """Draw what `read_loss_curves` returned as an .svg or .png file."""
    title = "Validation loss: mean, and from lowest to highest seed"
    draw_curves(path, curves, title, "validation loss")
