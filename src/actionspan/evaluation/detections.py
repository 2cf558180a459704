"""mAP of one method's detections by class."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actionspan.errors import counted
from actionspan.evaluation.detection import detection_precision
from actionspan.evaluation.recall import CLASS_COLUMNS
from actionspan.evaluation.score import read_scored, score_by_class
from actionspan.storage.text import markdown_table
from actionspan.storage.writing import write_json, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    for name, text in (
        ("detections", "detections.json, ActivityNet format"),
        ("proposals", "the proposals they come from, without labels"),
        ("annotations", "annotations.json"),
        ("out-json", "the record"),
        ("out-markdown", "a table by class"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, help=text)
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--method", help="the method's name (default: the stem of --out-json)")


def run(arguments: argparse.Namespace) -> None:
    """Write the record, and the table."""
    truth, subset = arguments.annotations, arguments.subset
    method = arguments.method or arguments.out_json.stem
    record = score_by_class(truth, arguments.detections, subset, method)
    agnostic = detection_precision(*read_scored(truth, arguments.proposals, subset))
    record["without_labels"] = agnostic.scores()
    write_text(arguments.out_markdown, _page(record))
    write_json(arguments.out_json, record)


def _page(record: Mapping[str, Any]) -> str:
    """Return the table: the mean over classes, the proposals without labels, then each class."""
    titles = ["class", "instances", "detections", *CLASS_COLUMNS, "average"]
    detections = record["proposals"] - record["unknown_labels"]
    scored = [
        ("**mean over classes**", detections, record),
        ("proposals without labels", "", {**record, **record["without_labels"]}),
        *((label, own["detections"], own) for label, own in record["classes"].items()),
    ]
    rows = []
    for name, number, scores in scored:
        kind = "AP" if "average_AP" in scores else "mAP"
        keys = [*(f"{kind}@{tiou}" for tiou in CLASS_COLUMNS), f"average_{kind}"]
        cells = (f"{100 * scores[key]:.2f}" for key in keys)
        rows.append([name, scores["instances"], number, *cells])
    lines = [
        f"Detections of {record['method']}, subset {record['subset']}: "
        f"{counted(record['videos'], 'video')}. "
        "Average precision in percent at some tIoU, and the average over tIoU 0.5 to 0.95.",
        "",
        *markdown_table("l" + "r" * (len(titles) - 1), titles, rows),
    ]
    if record["unknown_labels"]:
        lines += ["", f"{record['unknown_labels']} detections have a label of no instance here."]
    return "\n".join(lines) + "\n"
