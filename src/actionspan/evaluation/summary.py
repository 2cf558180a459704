"""One table of all methods, as JSON, TSV and Markdown."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actionspan.annotations.formats.times import to_number
from actionspan.errors import InputError, counted
from actionspan.evaluation.records import AR_NUMBERS, Record
from actionspan.storage.text import markdown_table
from actionspan.storage.writing import read_json, write_json, write_text, write_tsv

_SUMMARY_KEYS = (*(f"AR@{number}" for number in AR_NUMBERS), "AUC", "AUC_interval")
BASELINES = ("random", "tiles", "sliding", "difference", "cuts")  # that need no training
_DETECTION_KEYS = ("mAP@0.50", "average_mAP")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--evaluations", type=Path, nargs="+", required=True, help="in the order of the table"
    )
    parser.add_argument(
        "--readers", type=Path, nargs="*", default=[], help="reader/METHOD.json, for --out-found"
    )
    parser.add_argument("--out-found", type=Path, help="how many events are found, in Markdown")
    parser.add_argument("--out-json", type=Path, required=True, help="{method: {AR@1: …, AUC: …}}")
    parser.add_argument("--out-tsv", type=Path, required=True, help="in percent")
    parser.add_argument("--out-markdown", type=Path, required=True, help="in percent")


def run(arguments: argparse.Namespace) -> None:
    """Write the table of all methods."""
    records = read_records(arguments.evaluations)
    write_json(arguments.out_json, summarize(records))
    write_tsv(arguments.out_tsv, *_summary_rows(records))
    write_text(arguments.out_markdown, summary_markdown(records))
    if arguments.out_found and arguments.readers:
        write_text(arguments.out_found, found_markdown(arguments.readers))


def read_records(paths: Sequence[Path]) -> list[Record]:
    """Read evaluation records, in the order given.

    Raises:
        InputError: A file is not a record, two name one method, or they score different videos.
    """
    records: list[Record] = []
    for path in paths:
        record = read_json(path)
        if wrong := _wrong_key(record):
            raise InputError(f"{path}: not an evaluation: {wrong}; make it again")
        for earlier, other in zip(paths, records, strict=False):
            if other["method"] == record["method"]:
                raise InputError(f"{path}: method {record['method']!r} is in {earlier} already")
            for key in ("subset", "folds", "videos", "instances"):
                here, there = record.get(key), other.get(key)
                if here != there:
                    raise InputError(
                        f"{path}: {key} is {here!r}, but {there!r} in {earlier}; "
                        "only evaluations of the same ground truth can share a table"
                    )
            if (len(other["AN"]), *other["recall"]) != (len(record["AN"]), *record["recall"]):
                raise InputError(f"{path}: other AN or tIoUs than in {earlier}; make both again")
        records.append(record)
    return records


def _wrong_key(record: Any) -> str:
    """Return which key of a record is missing or holds something else; empty if none does."""
    if not isinstance(record, dict):
        return "no 'method'"
    points = len(record["AN"]) if isinstance(record.get("AN"), list) else 0
    recall = record.get("recall")
    tious = [key for key in recall if to_number(key)] if isinstance(recall, dict) else []

    def holds_curves(value: Any, *shape: int) -> bool:
        right = isinstance(value, dict) and len(value) > 0 and list(value) == tious
        return right and _holds(list(value.values()), len(tious), *shape)

    detection = record.get("detection")
    right = {
        "method": isinstance(record.get("method"), str),
        "subset": isinstance(record.get("subset"), str),
        "videos": type(record.get("videos")) is int,
        "instances": type(record.get("instances")) is int,
        "AN": points > 0 and _holds(record["AN"], points),
        "AR": _holds(record.get("AR"), points),
        "AR_interval": _holds(record.get("AR_interval"), 2, points),
        "recall": holds_curves(recall, points),
        "recall@100_interval": holds_curves(record.get("recall@100_interval"), 2),
        "detection": isinstance(detection, dict),
        **{key: _holds(record.get(key)) for key in _SUMMARY_KEYS},
        "AUC_interval": _holds(record.get("AUC_interval"), 2),
    }
    if isinstance(detection, dict):
        right |= {f"detection: {key}": _holds(detection.get(key)) for key in _DETECTION_KEYS}
    wrong = next((key for key, is_right in right.items() if not is_right), "")
    if not wrong:
        return ""
    return f"{wrong!r} holds something else" if wrong in record else f"no {wrong!r}"


def _holds(value: Any, *shape: int) -> bool:
    """Return whether a value is a number, or nested lists of numbers of a shape."""
    if not shape:
        return type(value) in (int, float) and abs(value) < 1e12  # NaN compares false
    right = isinstance(value, list) and len(value) == shape[0]
    return right and all(_holds(item, *shape[1:]) for item in value)


def found_markdown(paths: Sequence[Path]) -> str:
    """Return how many events each method's list finds, in plain numbers; `paths` of the reader's.

    Raises:
        InputError: A file is not a record of `evaluation reader`.
    """
    rows = []
    for path in paths:
        record = read_json(path)
        try:
            events, videos = record["instances"], record["videos"]
            # a method without a list of events has the best proposals that do not overlap
            judged = record["lists"].get("events", record["lists"]["chapters"])
            shares = judged["recall"], judged["as_many"], judged["first"]["1"]["recall"]
            right, as_many, first = (round(share * events) for share in shares)
            found = f"{right} of {events}", f"{as_many} of {events}", f"{first} of {videos}"
            row = [record["method"], round(judged["per_video"] * videos), *found]
        except (KeyError, TypeError, AttributeError):
            raise InputError(f"{path}: not a record of `evaluation reader`") from None
        rows.append(row)
    titles = ["method", "events listed", "events found", "found by as many events as instances"]
    titles.append("videos with a right first event")
    return "\n".join([*markdown_table("lrrrr", titles, rows), ""])


def summarize(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return `{method: {"AR@1": …, "AUC": …, "AUC_interval": [low, high], "mAP@0.50": …, …}}`."""
    return {
        record["method"]: {
            **{key: record[key] for key in _SUMMARY_KEYS},
            **{key: record["detection"][key] for key in _DETECTION_KEYS},
        }
        for record in records
    }


def _summary_rows(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the table, all in percent with two decimals."""
    columns = ["method", *_SUMMARY_KEYS[:-1], "AUC_low", "AUC_high", *_DETECTION_KEYS]
    rows = []
    for method, scores in summarize(records).items():
        scores["AUC_low"], scores["AUC_high"] = scores["AUC_interval"]
        rows.append([method, *(_score(key, scores[key]) for key in columns[1:])])
    return columns, rows


def baseline_notes(records: Sequence[Record]) -> str:
    """Return the sentences a reader should see first: models that baselines beat."""
    auc = {record["method"]: record["AUC"] for record in records}
    beaten = {name: auc[name] for name in BASELINES if name in auc}
    sentences = []
    for name, area in auc.items():
        better = [base for base in beaten if area <= beaten[base]]
        if name in beaten or not better:
            continue
        best = max(better, key=beaten.__getitem__)
        figures = f"AUC {_score('AUC', area)} against {_score('AUC', beaten[best])}"
        sentences.append(f" {name} is not above the baseline {best}: {figures}.")
    return "".join(sentences)


def paper_note(records: Sequence[Record]) -> str:
    """Return what mtn and origin are, where the paper's order of them does not hold."""
    auc = {record["method"]: record["AUC"] for record in records}
    if not {"mtn", "origin"} <= auc.keys() or auc["mtn"] > auc["origin"]:
        return ""
    both = " against ".join(_score("AUC", auc[name]) for name in ("mtn", "origin"))
    return (
        "mtn is the network of arXiv:1906.06496, origin BSN's (Lin et al., ECCV 2018). "
        f"In the paper mtn is above origin; here it is not: AUC {both}."
    )


def table_of(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of the table for people: AUC with its interval over videos, if any."""
    keys = [*_SUMMARY_KEYS, *_DETECTION_KEYS]
    rows = []
    for method, scores in summarize(records).items():
        cells = {key: _score(key, scores[key]) for key in keys if key != "AUC_interval"}
        interval = "–".join(_score("AUC", value) for value in scores["AUC_interval"])
        cells["AUC_interval"] = interval if records[0]["videos"] > 1 else "–"
        rows.append([method, *(cells[key] for key in keys)])
    return ["method", *(key.removeprefix("AUC_").replace("_", " ") for key in keys)], rows


def summary_markdown(records: Sequence[Record]) -> str:
    """Return the table in Markdown, the best of each column in bold if it is above the others."""
    first = records[0]
    titles, rows = table_of(records)
    for place, title in enumerate(titles):
        column = [row[place] for row in rows]
        if title in ("method", "interval") or len(set(column)) == 1:
            continue
        best = max(column, key=float)
        for row in rows:
            row[place] = f"**{best}**" if row[place] == best else row[place]
    folds = f", each held out in one of {first['folds']} folds" if "folds" in first else ""
    lines = [
        f"ActivityNet protocol, subset {first['subset']}: "
        f"{counted(first['videos'], 'video')}{folds}, {counted(first['instances'], 'instance')}. "
        "All in percent; interval: bootstrap over videos. "
        "mAP: proposals as detections of one class (average: tIoU 0.5 to 0.95)."
        f"{baseline_notes(records)}",
        "",
        *markdown_table("l" + "r" * (len(titles) - 1), titles, rows),
    ]
    if sentences := paper_note(records):
        lines += ["", sentences]
    return "\n".join(lines) + "\n"


def percent(share: float | None) -> str:
    """Return a share in percent, a dash where there is none."""
    return "–" if share is None else f"{100 * share:.1f}"


def seconds(value: float | None) -> str:
    """Return a time for a table; a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


def _score(key: str, value: float) -> str:
    """Return a score in percent with two decimals; AUC and its interval are in percent already."""
    return f"{value if key.startswith('AUC') else 100 * value:.2f}"
