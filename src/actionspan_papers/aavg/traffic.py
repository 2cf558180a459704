"""Write what joining learners costs: bytes, averages, and the share of time spent on exchanges."""

import math

from actionspan.arrays import Float64
from actionspan_papers.aavg.comparisons import STREAM_NAMES, ExperimentSettings
from actionspan_papers.aavg.readers import ON_LOGS, LoggedRuns
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.experiments import Experiment, Row, Table, titled

_TITLES = titled(
    "run; stream; learners; seeds; averages_per_epoch: averages; sent_mb_per_epoch: MB; "
    "seconds_per_epoch: seconds; communication_seconds_per_epoch: of exchanges; "
    "communication_percent: share, %"
)
_FORMS = dict(zip(list(_TITLES)[4:8], (".2f", ".3f", ".2f", ".3f"), strict=True))


def _rows(runs: LoggedRuns, settings: ExperimentSettings) -> list[Row]:
    """Return a row a run, of means over epochs and seeds; unknown values are empty."""
    rows: list[Row] = []
    for (name, stream), logs in runs.logs.items():
        columns, exchanged, share = logs.columns, math.nan, Estimate()
        if logs.timed:
            exchanged = float(columns["communication_seconds"].mean())
            share = over_seeds([logs.shares], settings.confidence).percentage()
        cells = (
            *(name, stream, logs.learning.learners, len(logs.seeds)),
            _per_epoch(columns["averages"]),
            _per_epoch(columns["sent_bytes"]) / 1e6 if logs.counted else math.nan,
            *(float(columns["seconds"].mean()), exchanged, share),
        )
        rows.append(dict(zip(_TITLES, cells, strict=True)))
    return rows


def _per_epoch(so_far: Float64) -> float:
    """Return the mean of an epoch over (S, E) counts since the first."""
    return float((so_far[:, -1] / so_far.shape[1]).mean())


def _table(_: object, runs: LoggedRuns, settings: ExperimentSettings) -> Table:
    caption = [
        "Costs of the exchanges between learners; means over epochs and seeds.",
        f"{runs.trained}.",
        "MB: 10⁶ bytes that all ranks together sent in an epoch; empty where nothing was counted: "
        "a library sends, or the learners are in one process, which has no seconds of exchanges "
        "either. Seconds are of the first learner, in training alone; seconds of exchanges include "
        "waiting for a later rank. In brackets the "
        f"{100 * settings.confidence:.4g} % interval over seeds (Student's t); one seed has none.",
    ]
    return Table(caption=caption, titles=_TITLES, words=STREAM_NAMES)


EXPERIMENT = Experiment(rows=_rows, table=_table, forms=_FORMS, **ON_LOGS)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
