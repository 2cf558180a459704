"""Write and draw validation losses over epochs, as in figure 10 of paper 001: mean and range."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from actionspan.evaluation.records import EvaluationSettings
from actionspan.evaluation.resampling import Floats
from actionspan.papers.curves import band, draw_curves, range_cells, write_figures
from actionspan.papers.estimates import Estimate, over_seeds
from actionspan.papers.runs import named_files, read_logs
from actionspan.papers.tables import Row, add_files, add_outputs, write_table
from actionspan.settings import add_settings, from_arguments

_PATH = "results/temporal/{model}/{run}/log.tsv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    from actionspan.papers.mtn.table import add_features

    add_logs(parser)
    add_features(parser)
    add_outputs(parser, figure=True)
    add_settings(parser, EvaluationSettings)


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Add the flag of the logs of training."""
    add_files(parser, "--logs", "temporal/{model}[-seedN]/*/log.tsv")


def run(arguments: argparse.Namespace) -> None:
    """Write every epoch as a table, the lowest and the last losses in Markdown, and the figure."""
    from actionspan.papers.mtn.table import measured_on

    confidence = from_arguments(EvaluationSettings, arguments).confidence
    losses = read_losses(arguments.logs)
    caption = [
        "Validation losses (figure 10 of paper 001), lower is better; soft and hard labels have "
        "losses that cannot be compared.",
        f"{measured_on(arguments.features)}, the validation videos.",
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none. The band of loss_curves.svg is no interval: it goes "
        "from the lowest to the highest seed.",
    ]
    titles = {name: name for name in ("model", "seeds", "epochs", "lowest loss")}
    titles["last"] = "loss at the last epoch"
    shown = summary_rows(losses, confidence)
    write_table(arguments, curve_rows(losses), caption, "lrrrr", titles, shown)
    curves = {model: band(values) for model, values in losses.items()}
    title = "Validation loss: mean, and from lowest to highest seed"
    write_figures(arguments, lambda figure: draw_curves(figure, curves, title, "validation loss"))


def read_losses(paths: Sequence[Path]) -> dict[str, Floats]:
    """Read logs of training, `…/{model}[-seedN]/{run}/log.tsv`: (S, E) validation losses by model.

    They are NaN where there are no validation videos.

    Raises:
        InputError: A file is not a log or has another number of epochs than the model's first
            seed, its path names no model, or another one is of the same model and seed.
    """
    names = [path.resolve().parent.parent.name for path in paths]
    files = named_files(names, paths, _PATH)
    logs = read_logs(files, ["validation_loss"], all_alike=False)
    return {model: columns[0] for model, columns in logs.items()}


def curve_rows(losses: Mapping[str, Floats]) -> list[Row]:
    """Return of each model and epoch the mean and range of the seeds."""
    return [
        {"model": model, "epoch": str(epoch), "seeds": str(len(values))}
        | range_cells("validation_loss", *numbers)
        for model, values in losses.items()
        for epoch, numbers in enumerate(zip(*band(values), strict=True), start=1)
    ]


def summary_rows(losses: Mapping[str, Floats], confidence: float) -> list[Row]:
    """Return of each model its lowest and its last loss with their intervals over seeds."""
    rows: list[Row] = []
    for model, values in losses.items():
        seeds, epochs = map(str, values.shape)
        both = {"lowest loss": values.min(axis=1), "last": values[:, -1]}
        if np.isfinite(values).all():
            estimates = {key: over_seeds([v], confidence, form=".4f") for key, v in both.items()}
        else:
            estimates = dict.fromkeys(both, Estimate(why_not="no validation loss"))
        rows.append({"model": model, "seeds": seeds, "epochs": epochs, **estimates})
    return rows
