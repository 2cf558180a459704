"""Write the time to equal accuracy of joined learners and of one alone, ours and the printed."""

from typing import NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES
from actionspan_papers.aavg.published import LEARNERS, TIMES
from actionspan_papers.aavg.settings import ExperimentSettings
from actionspan_papers.estimates import Estimate, over_seeds, over_seeds_words
from actionspan_papers.experiments import Experiment, Row, Table

ALONE = "none-k1"


class Gain(NamedTuple):
    """What is gained on the way to the highest accuracy that both reach; (S,) by shared seed."""

    accuracy: Float64
    """That accuracy, in percent."""
    samples: Float64
    """Samples that one learner alone sees until then ÷ those of all joined learners."""
    speedup: Float64
    """The same of the seconds of training."""


_Read = tuple[readers.Logs, str]
"""The logs, and how their runs were trained."""


def _table(_: object, read: _Read, settings: ExperimentSettings) -> Table:
    caption = [
        "Time to equal accuracy: until the first epoch with the highest validation accuracy that "
        "the way and one learner alone of the same seed both reach. Fewer samples: those of one "
        "alone ÷ those of all learners. Speed-up: the same of the seconds of training, without "
        "validation; empty where learners are in one process. Above 1 a learner, it is "
        "super-linear.",
        f"Ours: {read[1]}. One learner alone has the same optimiser, "
        "as in the paper's figure 9; the paper's own baseline of time is SGD with a step size that "
        f"is halved every 50 epochs. {over_seeds_words(settings.confidence)}",
        "Printed: minutes of one GPU ÷ minutes of 16; the paper states the former twice.",
    ]
    titles = {name: name for name in ("way", "stream", "learners", "seeds", "accuracy")}
    titles |= {"samples": "fewer samples", "speedup": "speed-up", "per_learner": "a learner"}
    rows = _rows(read, settings)
    shown = [{**row, "stream": STREAM_NAMES[str(row["stream"])]} for row in rows]
    return Table(caption=caption, titles=titles, rows=shown, align="llrrrrrr")


def gain(alone: readers.RunLogs, joined: readers.RunLogs) -> Gain:
    """Return what joined learners gain; NaN where an accuracy is unknown."""
    both = (alone, joined)
    places = readers.shared_seeds([logs.seeds for logs in both])
    accuracies = [logs.accuracy[own] for logs, own in zip(both, places, strict=True)]
    level = np.minimum(*(accuracy.max(axis=1) for accuracy in accuracies))
    found = []
    for logs, own, accuracy in zip(both, places, accuracies, strict=True):
        reached = (accuracy >= level[:, None]).argmax(axis=1)[:, None]
        for spent in (logs.columns["samples"], logs.columns["seconds"].cumsum(axis=1)):
            found.append(np.take_along_axis(spent[own], reached, axis=1)[:, 0])
    unknown = np.where(np.isnan(level), np.nan, 1.0)
    return Gain(level, unknown * found[0] / found[2], unknown * found[1] / found[3])


def _rows(read: _Read, settings: ExperimentSettings) -> list[Row]:
    """Return a row a way of joining learners and stream, and those that the paper prints."""
    ways = readers.by_way(read[0])
    rows: list[Row] = []
    for (way, stream), logs in ways.items():
        alone = ways.get((ALONE, stream), logs)
        found = gain(alone, logs)
        if alone is logs or not len(found.accuracy):
            continue
        learners = logs.learning.learners
        speedup = found.speedup if logs.timed else np.nan * found.speedup
        numbers = {
            "accuracy": found.accuracy,
            "samples": found.samples,
            "speedup": speedup,
            "per_learner": speedup / learners,
        }
        estimates = {
            name: over_seeds([each], settings.confidence) for name, each in numbers.items()
        }
        estimates["accuracy"] = estimates["accuracy"].percentage()
        named: Row = {"way": way, "stream": stream, "learners": learners}
        rows.append({**named, "seeds": len(found.accuracy), **estimates})
    for stream, one, many, where, _ in TIMES:
        named = {"way": f"printed, {where}", "stream": stream, "learners": LEARNERS}
        values = {"speedup": one / many, "per_learner": one / many / LEARNERS}
        unknown = dict.fromkeys(("accuracy", "samples"), Estimate())
        printed = {name: Estimate(value=value) for name, value in values.items()}
        rows.append({**named, "seeds": "", **unknown, **printed})
    return rows


EXPERIMENT = Experiment(
    inputs={**readers.LOGS, **readers.SCORES},
    read=readers.read_logs_of,
    rows=_rows,
    table=_table,
    settings=(ExperimentSettings,),
    planned=readers.PLANNED,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
