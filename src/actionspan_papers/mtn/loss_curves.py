"""Write and draw validation losses over epochs, as in figure 10 of paper 001: mean and range."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from actionspan.arrays import Float64
from actionspan.evaluation.settings import EvaluationSettings
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.experiments import Experiment, Row, Table, files, titled
from actionspan_papers.kinds import DataFrame, Figure, Flags
from actionspan_papers.mtn.table import FEATURES, measured_on
from actionspan_papers.runs import draw_curves, epoch_rows, named_files, range_forms, read_logs

_COLUMN = "validation_loss"
_LOSSES = {"lowest": "lowest loss", "last": "loss at the last epoch"}
_TITLES = titled("model; seeds; epochs") | _LOSSES
LOGS = {"logs": files("temporal/{model}[-seedN]/*/log.tsv")}
"""The flag of the logs of training."""
Losses = Mapping[str, Float64]
"""(S, E) validation losses by model."""
_Read = tuple[Losses, str]
"""The losses, and the data they were measured on."""


def read_losses(paths: Sequence[Path]) -> dict[str, Float64]:
    """Read logs of training, `…/{model}[-seedN]/{run}/log.tsv`: (S, E) validation losses by model.

    They are NaN without validation videos.

    Raises:
        InputError: A file is not a log or has another number of epochs than the model's first
            seed, its path names no model, or two are of one model and seed.
    """
    names = [path.resolve().parent.parent.name for path in paths]
    by_model = named_files(names, paths, "results/temporal/{model}/{run}/log.tsv")
    logs = read_logs(by_model, [_COLUMN], all_alike=False)
    return {model: columns[0] for model, columns in logs.items()}


def _read(arguments: Flags, _: EvaluationSettings) -> _Read:
    return read_losses(arguments.logs), measured_on(arguments.features)


def _rows(read: _Read, _: EvaluationSettings) -> list[Row]:
    """Return a row an epoch."""
    curves = read[0].items()
    return [row for name, own in curves for row in epoch_rows({"model": name}, _COLUMN, own)]


def _table(_: object, read: _Read, settings: EvaluationSettings) -> Table:
    """Return the lowest and the last losses, with their intervals over seeds."""
    caption = [
        "Validation losses (figure 10 of paper 001), lower is better.",
        f"{read[1]}, the validation videos.",
        f"{over_seeds_words(settings.confidence)} The band of loss_curves.svg is not "
        "an interval: it goes from the lowest to the highest seed.",
    ]
    rows: list[Row] = []
    for model, values in read[0].items():
        losses = [Estimate(why_not="no validation loss")] * 2
        if np.isfinite(values).all():
            both = (values.min(axis=1), values[:, -1])
            losses = [over_seeds([own], settings.confidence, form=".4f") for own in both]
        rows.append(dict(zip(_TITLES, (model, *values.shape, *losses), strict=True)))
    return Table(caption=caption, titles=_TITLES, rows=rows, align="lrrrr")


def _draw(figure: Figure, frame: DataFrame, *_: object) -> None:
    title = "Validation loss: mean, and from lowest to highest seed"
    draw_curves(figure, frame, "model", _COLUMN, title)


EXPERIMENT = Experiment(
    inputs={**LOGS, **FEATURES},
    read=_read,
    rows=_rows,
    table=_table,
    figure=_draw,
    settings=(EvaluationSettings,),
    forms=range_forms(_COLUMN),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
