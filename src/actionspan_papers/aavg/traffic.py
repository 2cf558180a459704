"""Write what joining learners costs: bytes, averages, and the share of time spent on exchanges."""

import argparse

from actionspan.arrays import Float64
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.tables import Row, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    readers.add_runs(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the costs of each run."""
    confidence = readers.settings_of(arguments).confidence
    rows = _rows(readers.read_run_logs(arguments.logs), confidence)
    caption = [
        "What the exchanges between learners cost; means over epochs and seeds.",
        f"{readers.training_of(arguments.scores)}.",
        "MB: 10⁶ bytes that all ranks together sent in an epoch; empty where nothing was counted: "
        "a library sends, or the learners are in one process, which has no seconds of exchanges "
        "either. Seconds are of the first learner, in training alone; those of exchanges include "
        "waiting for a later rank. In brackets the "
        f"{100 * confidence:.4g} % interval over seeds (Student's t); one seed has none.",
    ]
    titles = {name: name for name in ("run", "stream", "learners", "seeds")} | {
        "averages_per_epoch": "averages",
        "sent_mb_per_epoch": "MB",
        "seconds_per_epoch": "seconds",
        "communication_seconds_per_epoch": "of exchanges",
        "communication_percent": "share, %",
    }
    shown = [{**row, "stream": STREAM_NAMES[str(row["stream"])]} for row in rows]
    write_table(arguments, rows, caption, "llrrrrrrr", titles, shown)


def _rows(every: readers.Logs, confidence: float) -> list[Row]:
    """Return a row a run, of means over epochs and seeds; what is unknown is empty."""
    rows: list[Row] = []
    for (name, stream), logs in every.items():
        columns, counted = logs.columns, logs.counted
        exchanged = float(columns["communication_seconds"].mean())
        timed = logs.timed
        rows.append(
            {
                "run": name,
                "stream": stream,
                "learners": str(logs.learning.learners),
                "seeds": str(len(logs.seeds)),
                "averages_per_epoch": f"{_per_epoch(columns['averages']):.2f}",
                "sent_mb_per_epoch": (
                    f"{_per_epoch(columns['sent_bytes']) / 1e6:.3f}" if counted else ""
                ),
                "seconds_per_epoch": f"{float(columns['seconds'].mean()):.2f}",
                "communication_seconds_per_epoch": f"{exchanged:.3f}" if timed else "",
                "communication_percent": (
                    over_seeds([logs.shares], confidence).percentage() if timed else Estimate()
                ),
            }
        )
    return rows


def _per_epoch(so_far: Float64) -> float:
    """Return the mean of an epoch over (S, E) counts since the first."""
    return float((so_far[:, -1] / so_far.shape[1]).mean())
