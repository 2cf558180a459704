"""Write what joining learners costs: bytes, averages, and the share of time spent on exchanges."""

from actionspan.arrays import Float64
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES
from actionspan_papers.aavg.settings import ExperimentSettings
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.experiments import Experiment, Row, Table

_Read = tuple[readers.Logs, str]
"""The logs, and how their runs were trained."""


def _table(_: object, read: _Read, settings: ExperimentSettings) -> Table:
    caption = [
        "What the exchanges between learners cost; means over epochs and seeds.",
        f"{read[1]}.",
        "MB: 10⁶ bytes that all ranks together sent in an epoch; empty where nothing was counted: "
        "a library sends, or the learners are in one process, which has no seconds of exchanges "
        "either. Seconds are of the first learner, in training alone; those of exchanges include "
        "waiting for a later rank. In brackets the "
        f"{100 * settings.confidence:.4g} % interval over seeds (Student's t); one seed has none.",
    ]
    titles = {name: name for name in ("run", "stream", "learners", "seeds")} | {
        "averages_per_epoch": "averages",
        "sent_mb_per_epoch": "MB",
        "seconds_per_epoch": "seconds",
        "communication_seconds_per_epoch": "of exchanges",
        "communication_percent": "share, %",
    }
    rows = _rows(read, settings)
    shown = [{**row, "stream": STREAM_NAMES[str(row["stream"])]} for row in rows]
    return Table(caption=caption, titles=titles, rows=shown, align="llrrrrrrr")


def _rows(read: _Read, settings: ExperimentSettings) -> list[Row]:
    """Return a row a run, of means over epochs and seeds; what is unknown is empty."""
    rows: list[Row] = []
    for (name, stream), logs in read[0].items():
        columns, counted = logs.columns, logs.counted
        exchanged = float(columns["communication_seconds"].mean())
        timed = logs.timed
        rows.append(
            {
                "run": name,
                "stream": stream,
                "learners": logs.learning.learners,
                "seeds": len(logs.seeds),
                "averages_per_epoch": _per_epoch(columns["averages"]),
                "sent_mb_per_epoch": (_per_epoch(columns["sent_bytes"]) / 1e6 if counted else ""),
                "seconds_per_epoch": float(columns["seconds"].mean()),
                "communication_seconds_per_epoch": exchanged if timed else "",
                "communication_percent": (
                    over_seeds([logs.shares], settings.confidence).percentage()
                    if timed
                    else Estimate()
                ),
            }
        )
    return rows


def _per_epoch(so_far: Float64) -> float:
    """Return the mean of an epoch over (S, E) counts since the first."""
    return float((so_far[:, -1] / so_far.shape[1]).mean())


EXPERIMENT = Experiment(
    inputs={**readers.LOGS, **readers.SCORES},
    read=readers.read_logs_of,
    rows=_rows,
    table=_table,
    settings=(ExperimentSettings,),
    planned=readers.PLANNED,
    forms={
        "averages_per_epoch": ".2f",
        "sent_mb_per_epoch": ".3f",
        "seconds_per_epoch": ".2f",
        "communication_seconds_per_epoch": ".3f",
    },
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
