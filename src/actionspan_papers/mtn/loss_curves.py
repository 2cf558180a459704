"""Write and draw validation losses over epochs, as in figure 10 of paper 001: mean and range."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actionspan.arrays import Float64
from actionspan.evaluation.records import EvaluationSettings
from actionspan.settings import add_settings, from_arguments
from actionspan_papers.curves import epoch_rows, write_curves
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.mtn.table import add_features, measured_on
from actionspan_papers.runs import named_files, read_logs
from actionspan_papers.tables import Row, add_files, add_outputs, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_logs(parser)
    add_features(parser)
    add_outputs(parser, figure=True)
    add_settings(parser, EvaluationSettings)


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Add the flag of the logs of training."""
    add_files(parser, "--logs", "temporal/{model}[-seedN]/*/log.tsv")


def run(arguments: argparse.Namespace) -> None:
    """Write every epoch as a table, the lowest and the last losses in Markdown, and the figure."""
    confidence = from_arguments(EvaluationSettings, arguments).confidence
    losses = read_losses(arguments.logs)
    caption = [
        "Validation losses (figure 10 of paper 001), lower is better; soft and hard labels have "
        "losses that cannot be compared.",
        f"{measured_on(arguments.features)}, the validation videos.",
        f"{over_seeds_words(confidence)} The band of loss_curves.svg is no interval: it goes "
        "from the lowest to the highest seed.",
    ]
    titles = {name: name for name in ("model", "seeds", "epochs", "lowest loss")}
    titles["last"] = "loss at the last epoch"
    rows = [
        row
        for model, values in losses.items()
        for row in epoch_rows({"model": model}, "validation_loss", values)
    ]
    shown = [_summary(model, values, confidence) for model, values in losses.items()]
    write_table(arguments, rows, caption, "lrrrr", titles, shown)
    title = "Validation loss: mean, and from lowest to highest seed"
    write_curves(arguments, losses, title, "validation loss")


def read_losses(paths: Sequence[Path]) -> dict[str, Float64]:
    """Read logs of training, `…/{model}[-seedN]/{run}/log.tsv`: (S, E) validation losses by model.

    They are NaN where there are no validation videos.

    Raises:
        InputError: A file is not a log or has another number of epochs than the model's first
            seed, its path names no model, or two are of one model and seed.
    """
    names = [path.resolve().parent.parent.name for path in paths]
    files = named_files(names, paths, "results/temporal/{model}/{run}/log.tsv")
    logs = read_logs(files, ["validation_loss"], all_alike=False)
    return {model: columns[0] for model, columns in logs.items()}


def _summary(model: str, values: Float64, confidence: float) -> Row:
    """Return a model's lowest and last loss with their intervals over seeds."""
    seeds, epochs = map(str, values.shape)
    cells = {"lowest loss": values.min(axis=1), "last": values[:, -1]}
    if np.isfinite(values).all():
        estimates = {key: over_seeds([cell], confidence, form=".4f") for key, cell in cells.items()}
    else:
        estimates = dict.fromkeys(cells, Estimate(why_not="no validation loss"))
    return {"model": model, "seeds": seeds, "epochs": epochs, **estimates}
