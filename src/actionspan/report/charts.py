"""The charts and tables of the page's summary, from the files of a run."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from actionspan.errors import InputError
from actionspan.evaluation.misses import NAMES
from actionspan.evaluation.records import (
    AR_AGAINST_AN,
    PANELS,
    RECALL_AGAINST_TIOU,
    Record,
    curves_of,
)
from actionspan.evaluation.summary import (
    baseline_notes,
    paper_note,
    percent,
    seconds,
    table_of,
)
from actionspan.report.content import Chart, Series, Table
from actionspan.storage.writing import read_json, read_tsv

# in the order of the way of the data
_STAGES = "dataset video recognition finetune features temporal proposals evaluation report".split()


_MEANING = {
    AR_AGAINST_AN: "How much of what happens is found, by the number of proposals a video, "
    "averaged over tIoU 0.5 to 0.95: higher is better.",
    RECALL_AGAINST_TIOU: "How much of what happens is found by 100 proposals a video, the stricter "
    "the overlap has to be: higher is better.",
}


def recall_charts(records: Sequence[Record]) -> list[Chart]:
    """Return average recall over AN, and recall over tIoU, of all methods with intervals."""
    if not records:
        return []
    first = records[0]
    note = (
        f"Subset {first['subset']}, videos: {first['videos']:,}, instances: {first['instances']:,}"
    )
    several = first["videos"] > 1  # one alone has no interval over videos
    note += ". Intervals: bootstrap over videos" * several
    curves = {record["method"]: curves_of(record) for record in records}
    return [
        Chart(
            title=title,
            x_label=label,
            y_label="instances found (share)",
            x=curves[first["method"]][kind].x,
            series=[
                Series(
                    name=method,
                    values=own[kind].y,
                    low=own[kind].low if several else (),
                    high=own[kind].high if several else (),
                )
                for method, own in curves.items()
            ],
            note=f"{_MEANING[kind]} {note}",
        )
        for kind, title, label in PANELS
    ]


def misses_charts(path: Path, method: str) -> list[Chart]:
    """Return the share of instances that a method misses, by their length in seconds.

    Raises:
        InputError: The table, `evaluation/misses/{method}.tsv`, is missing or has another format.
    """
    try:
        rows = [row for row in read_tsv(path) if row["characteristic"] == "length"]
        rows = [row for row in rows if int(row["instances"])]
        series = []
        for name in NAMES:
            shares = [int(row[f"missed@{name}"]) / int(row["instances"]) for row in rows]
            series.append(Series(name=f"tIoU {name}", values=shares))
        counts = ", ".join(f"{row['bin']} s: {row['instances']}" for row in rows)
    except (KeyError, ValueError):
        raise InputError(f"{path}: not a table of misses; make it again") from None
    return [
        Chart(
            title=f"What {method} misses, by length",
            x_label="length of the instance (s)",
            y_label="instances missed (share)",
            x=[row["bin"] for row in rows],
            series=series,
            kind="bars",
            note="The part of the instances of a length that 100 proposals do not find: lower is "
            f"better. Instances of each length: {counts}",
        )
    ]


def loss_charts(logs: Iterable[Path]) -> list[Chart]:
    """Return a chart of training and validation loss for each log.tsv of a model.

    The model is the folder of the folder that a log lies in.

    Raises:
        InputError: A log is missing or has no losses.
    """
    charts = []
    for path in logs:
        rows = read_tsv(path)
        try:
            epochs = [float(row["epoch"]) for row in rows]
            series = []
            for name in ("training", "validation"):
                cells = [row[f"{name}_loss"] for row in rows]
                losses = [float(cell) if cell else None for cell in cells]
                if any(cells):
                    series.append(Series(name=name, values=losses))
        except (KeyError, ValueError):
            raise InputError(f"{path}: not a log of a training; make it again") from None
        charts.append(
            Chart(
                title=f"Loss of {path.parent.parent.name}",
                x_label="epoch",
                y_label="loss",
                x=epochs,
                series=series,
                note="Lower is better. Where validation rises while training falls, the network "
                "learns its videos by heart.",
            )
        )
    return charts


def seconds_charts(folder: Path) -> list[Chart]:
    """Return the seconds that the jobs of each stage took, as Snakemake noted them.

    In the folder `benchmarks`, `{rule}/{job}.tsv` and `{rule}.tsv` are read. A job counts as it
    ran last.
    """
    seconds: dict[str, float] = defaultdict(float)
    jobs: dict[str, int] = defaultdict(int)
    for path in sorted(folder.rglob("*.tsv")):
        stage = path.relative_to(folder).parts[0].removesuffix(".tsv").partition("_")[0]
        try:
            with path.open(newline="", encoding="utf-8") as file:
                times = [float(row["s"]) for row in csv.DictReader(file, delimiter="\t")]
        except (OSError, KeyError, ValueError):
            continue  # being written, or not Snakemake's
        if times:
            seconds[stage] += sum(times)
            jobs[stage] += 1
    stages = [stage for stage in _STAGES if stage in jobs]
    if not stages:
        return []
    return [
        Chart(
            title="Seconds by stage",
            x_label="stage",
            y_label="time of its jobs (s)",
            x=stages,
            series=[Series(name="seconds", values=[round(seconds[name], 1) for name in stages])],
            kind="bars",
            note="Where the time of a run goes. Timed jobs: "
            + ", ".join(f"{name} {jobs[name]}" for name in stages),
        )
    ]


def summary_tables(records: Sequence[Record]) -> list[Table]:
    """Return the table of all methods."""
    if not records:
        return []
    columns, rows = table_of(records)
    note = (
        "All in percent. AR@N: the share of instances that the first N proposals find, mean over "
    )
    note += "tIoU 0.5 to 0.95. AUC: the area under AR over N. Intervals are over videos."
    note = f"{note}{baseline_notes(records)} {paper_note(records)}".rstrip()
    return [Table(title="All methods", columns=columns, rows=rows, note=note)]


def reader_tables(paths: Iterable[Path]) -> list[Table]:
    """Return the reader's measures of each method: a row for each list of its record.

    Raises:
        InputError: A file, `evaluation/reader/{method}.json`, is missing or has another format.
    """
    rows = []
    most = ""
    for path in paths:
        record = read_json(path)
        try:
            for name, each in record["lists"].items():
                most = percent(each["first"]["5"]["most"])
                judged = [each, each["first"]["1"], each["first"]["5"]]
                shares = [one[key] for one in judged for key in ("precision", "recall")]
                cells = [*map(percent, shares), percent(each["as_many"]), percent(each["repeats"])]
                off = each["end_errors"]["start"], each["end_errors"]["end"]
                cells.append(" / ".join(map(seconds, off)))
                rows.append([str(record["method"]), name, f"{each['per_video']:.1f}", *cells])
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{path}: not a record of a reader's lists; make it again") from None
    if not rows:
        return []
    columns = ["method", "list", "a video"]
    columns += [
        f"{key}{of}" for of in ("", ", first", ", first 5") for key in ("precision", "recall")
    ]
    return [
        Table(
            title="A reader's list",
            columns=[*columns, "recall, as many", "repeats", "ends off, s"],
            rows=rows,
            note="In percent, at tIoU 0.5; a video: events listed on average; as many: as many "
            "events as a video has instances; repeats: ranks 2 to 5 that overlap a better event; "
            "ends off: median of starts / ends of right events. An event finds one instance: the "
            f"first 5 of each video find {most} % at most",
        )
    ]
