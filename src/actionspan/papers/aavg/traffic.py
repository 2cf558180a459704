"""Write what joining learners costs: bytes, averages, and the share of time spent on exchanges."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from actionspan.evaluation.resampling import Floats
from actionspan.papers.aavg.comparisons import STREAM_NAMES
from actionspan.papers.aavg.readers import (
    RunKey,
    RunLogs,
    add_runs,
    read_run_logs,
    settings_of,
    training_of,
)
from actionspan.papers.estimates import Estimate, over_seeds
from actionspan.papers.tables import Row, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_runs(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the costs of each run."""
    confidence = settings_of(arguments).confidence
    rows = traffic_rows(read_run_logs(arguments.logs), confidence)
    caption = [
        "What the exchanges between learners cost; means over epochs and seeds.",
        f"{training_of(arguments.scores)}.",
        "MB: 10⁶ bytes that all ranks together sent in an epoch; empty where nothing was counted: "
        "a library sends, or the learners are in one process, which has no seconds of exchanges "
        "either. Seconds are of the first learner, in training alone; those of exchanges include "
        "waiting for a later rank. In brackets the "
        f"{100 * confidence:.4g} % interval over seeds (Student's t); one seed has none.",
    ]
    titles = {name: name for name in ("run", "stream", "learners", "seeds")}
    titles |= {
        "averages_per_epoch": "averages",
        "sent_mb_per_epoch": "MB",
        "seconds_per_epoch": "seconds",
        "communication_seconds_per_epoch": "of exchanges",
        "communication_percent": "share, %",
    }
    shown = [{**row, "stream": STREAM_NAMES[str(row["stream"])]} for row in rows]
    write_table(arguments, rows, caption, "llrrrrrrr", titles, shown)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Of a run the means over epochs and seeds.

    Attributes:
        averages: Of models, an epoch.
        megabytes: Sent by all ranks in an epoch, 10⁶ bytes; None where nobody counted them.
        seconds: Of training in an epoch, without validation.
        communication: Seconds of exchanges in an epoch.
        shares: (S,) the share of exchanges in the time of training, in percent.
    """

    averages: float
    megabytes: float | None
    seconds: float
    communication: float
    shares: Floats


def traffic_of(run_logs: RunLogs) -> Traffic:
    """Return what the exchanges of a run cost."""
    columns = run_logs.columns
    sent = _an_epoch(columns["sent_bytes"]) / 1e6
    seconds, exchanged = columns["seconds"], columns["communication_seconds"]
    counted = sent > 0 or run_logs.learning.learners == 1
    return Traffic(
        averages=_an_epoch(columns["averages"]),
        megabytes=sent if counted else None,
        seconds=float(seconds.mean()),
        communication=float(exchanged.mean()),
        shares=100 * exchanged.sum(axis=1) / seconds.sum(axis=1),
    )


def _an_epoch(so_far: Floats) -> float:
    """Return the mean of an epoch over (S, E) counts since the first."""
    return float((so_far[:, -1] / so_far.shape[1]).mean())


def traffic_rows(logs: Mapping[RunKey, RunLogs], confidence: float) -> list[Row]:
    """Return a row a run; what is not known is empty."""
    rows: list[Row] = []
    for (name, stream), run_logs in logs.items():
        costs = traffic_of(run_logs)
        timed = costs.communication > 0 or costs.megabytes is not None
        share = over_seeds([costs.shares], confidence).percentage() if timed else Estimate()
        rows.append(
            {
                "run": name,
                "stream": stream,
                "learners": str(run_logs.learning.learners),
                "seeds": str(len(run_logs.seeds)),
                "averages_per_epoch": f"{costs.averages:.2f}",
                "sent_mb_per_epoch": "" if costs.megabytes is None else f"{costs.megabytes:.3f}",
                "seconds_per_epoch": f"{costs.seconds:.2f}",
                "communication_seconds_per_epoch": f"{costs.communication:.3f}" if timed else "",
                "communication_percent": share,
            }
        )
    return rows
