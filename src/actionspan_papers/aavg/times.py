"""Write the time to equal accuracy of joined learners and of one alone, ours and the printed."""

import math
from typing import NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES, ExperimentSettings
from actionspan_papers.aavg.published import LEARNERS, TIMES
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.experiments import Cell, Experiment, Row, Table, titled

ALONE = "none-k1"
_TITLES = titled(
    "way; stream; learners; seeds; accuracy; samples: fewer samples; speedup: speed-up; "
    "per_learner: a learner"
)


class _Gain(NamedTuple):
    """The gain on the way to the highest accuracy that both reach; (S,) by shared seed."""

    accuracy: Float64
    """That accuracy, in percent."""
    samples: Float64
    """Samples that one learner alone sees until then ÷ samples of all joined learners."""
    speedup: Float64
    """The same of the seconds of training."""


def gain(alone: readers.RunLogs, joined: readers.RunLogs) -> _Gain:
    """Return what joined learners gain; NaN where an accuracy is unknown."""
    both = (alone, joined)
    places = readers.shared_seeds([logs.seeds for logs in both])
    accuracies = [logs.accuracy[own] for logs, own in zip(both, places, strict=True)]
    level = np.minimum(*(accuracy.max(axis=1) for accuracy in accuracies))
    spent = []
    for logs, own, accuracy in zip(both, places, accuracies, strict=True):
        reached = (accuracy >= level[:, None]).argmax(axis=1)[:, None]
        for so_far in (logs.columns["samples"], logs.columns["seconds"].cumsum(axis=1)):
            spent.append(np.take_along_axis(so_far[own], reached, axis=1)[:, 0])
    unknown = np.where(np.isnan(level), np.nan, 1.0)
    return _Gain(level, unknown * spent[0] / spent[2], unknown * spent[1] / spent[3])


def _rows(runs: readers.LoggedRuns, settings: ExperimentSettings) -> list[Row]:
    """Return a row a way of joining learners and stream, and those that the paper prints."""
    ways = readers.by_way(runs.logs)
    rows: list[Row] = []
    for (way, stream), logs in ways.items():
        alone = ways.get((ALONE, stream), logs)
        accuracy, samples, speedup = gain(alone, logs)
        if alone is logs or not len(accuracy):
            continue
        learners = logs.learning.learners
        speedup = speedup if logs.timed else np.nan * speedup
        estimates = [
            over_seeds([each], settings.confidence)
            for each in (accuracy, samples, speedup, speedup / learners)
        ]
        estimates[0] = estimates[0].percentage()
        cells: tuple[Cell, ...] = (way, stream, learners, len(accuracy), *estimates)
        rows.append(dict(zip(_TITLES, cells, strict=True)))
    for stream, one, many, where, _ in TIMES:
        faster = one / many
        printed = Estimate(value=faster), Estimate(value=faster / LEARNERS)
        unknown = math.nan, Estimate(), Estimate()
        cells = (f"printed, {where}", stream, LEARNERS, *unknown, *printed)
        rows.append(dict(zip(_TITLES, cells, strict=True)))
    return rows


def _table(_: object, runs: readers.LoggedRuns, settings: ExperimentSettings) -> Table:
    caption = [
        "Time to equal accuracy: until the first epoch with the highest validation accuracy that "
        "the way and one learner alone of the same seed both reach. Fewer samples: of one "
        "alone ÷ of all learners. Speed-up: the same of the seconds of training, without "
        "validation; empty where learners are in one process. Above 1 a learner, it is "
        "super-linear.",
        f"Ours: {runs.trained}. One learner alone has the same optimiser, "
        "as in the paper's figure 9; the paper's own baseline of time is SGD with a step size that "
        f"is halved every 50 epochs. {over_seeds_words(settings.confidence)}",
        "Printed: minutes of one GPU ÷ minutes of 16; the paper states the former twice.",
    ]
    return Table(caption=caption, titles=_TITLES, words=STREAM_NAMES)


EXPERIMENT = Experiment(rows=_rows, table=_table, **readers.ON_LOGS)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
