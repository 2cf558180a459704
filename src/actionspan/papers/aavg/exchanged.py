"""What joining learners costs: bytes sent, averages, and the share of time spent on exchanges."""

from collections.abc import Mapping
from dataclasses import dataclass

from actionspan.evaluation.resampling import Floats, seeds_half_width
from actionspan.papers.aavg.comparisons import STREAM_NAMES
from actionspan.papers.aavg.run_files import Of, RunLogs

TRAFFIC_COLUMNS = (
    "run",
    "stream",
    "learners",
    "seeds",
    "averages_per_epoch",
    "sent_mb_per_epoch",
    "seconds_per_epoch",
    "communication_seconds_per_epoch",
    "communication_percent",
    "communication_percent_low",
    "communication_percent_high",
)


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


def traffic_of(run: RunLogs) -> Traffic:
    """Return what the exchanges of a run cost."""
    sent = _an_epoch(run.columns["sent_bytes"]) / 1e6
    seconds, exchanged = run.columns["seconds"], run.columns["communication_seconds"]
    counted = sent > 0 or run.learning.learners == 1
    return Traffic(
        averages=_an_epoch(run.columns["averages"]),
        megabytes=sent if counted else None,
        seconds=float(seconds.mean()),
        communication=float(exchanged.mean()),
        shares=100 * exchanged.sum(axis=1) / seconds.sum(axis=1),
    )


def _an_epoch(so_far: Floats) -> float:
    """Return the mean of an epoch over (S, E) counts since the first."""
    return float((so_far[:, -1] / so_far.shape[1]).mean())


def traffic_cells(logs: Mapping[Of, RunLogs], confidence: float) -> list[list[str]]:
    """Return the rows of traffic.tsv, after `TRAFFIC_COLUMNS`; what is not known is empty."""
    rows = []
    for (name, stream), run in logs.items():
        of = traffic_of(run)
        share, low, high = float(of.shares.mean()), "", ""
        timed = of.communication > 0 or of.megabytes is not None
        if timed and len(of.shares) > 1:
            half = seeds_half_width([of.shares], confidence)
            low, high = f"{max(share - half, 0):.2f}", f"{min(share + half, 100):.2f}"
        megabytes = "" if of.megabytes is None else f"{of.megabytes:.3f}"
        rows.append(
            [
                name,
                stream,
                str(run.learning.learners),
                str(len(run.seeds)),
                f"{of.averages:.2f}",
                megabytes,
                f"{of.seconds:.2f}",
                f"{of.communication:.3f}" if timed else "",
                f"{share:.2f}" if timed else "",
                low,
                high,
            ]
        )
    return rows


def traffic_markdown(logs: Mapping[Of, RunLogs], measured: str, confidence: float) -> str:
    """Return the table in Markdown.

    Args:
        logs: Of any runs.
        measured: How and on what these runs were trained, in words.
        confidence: Of the intervals, in (0, 1).
    """
    lines = [
        "What the exchanges between learners cost; means over epochs and seeds.",
        f"{measured}.",
        "MB: 10⁶ bytes that all ranks together sent in an epoch; empty where nothing was counted: "
        "a library sends, or the learners are in one process, which has no seconds of exchanges "
        "either. Seconds are of the first learner, in training alone; those of exchanges include "
        "waiting for a later rank. In brackets the "
        f"{100 * confidence:.4g} % interval over seeds (Student's t); one seed has none.",
        "",
        "| run | stream | learners | seeds | averages | MB | seconds | of exchanges | share, % |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for cells in traffic_cells(logs, confidence):
        *words, share, low, high = cells
        words[1] = STREAM_NAMES[words[1]]
        shown = f"{share} [{low}, {high}]" if low else share
        lines.append("| " + " | ".join([*words, shown]) + " |")
    return "\n".join(lines) + "\n"
