"""One method's figures as a JSON record, and the table that puts methods side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.evaluation import thumos14
from actionspan.evaluation.activitynet import AVERAGE_NUMBERS, TIOU_THRESHOLDS, AverageRecall
from actionspan.evaluation.bootstrap import auc_interval
from actionspan.evaluation.detection import DetectionPrecision
from actionspan.evaluation.thumos14 import Thumos14Recall
from actionspan.files.markdown import markdown_table
from actionspan.files.storage import read_json
from actionspan.settings import Checked, option

AR_NUMBERS = (1, 5, 10, 50, 100)
SUMMARY_KEYS = (*(f"AR@{number}" for number in AR_NUMBERS), "AUC", "AUC_interval")
DETECTION_KEYS = ("mAP@0.50", "average_mAP")

Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(Checked):
    """How the bootstrap interval of AUC is made."""

    resamples: int = option(1000, "bootstrap resamples of the videos", least=1)
    confidence: float = option(0.95, "share of the resamples inside the interval", above=0, below=1)
    seed: int = option(1, "seed of the bootstrap", least=0)


def evaluation_record(
    method: str, subset: str, result: AverageRecall, settings: EvaluationSettings
) -> dict[str, Any]:
    """Return the figures of ActivityNet's protocol: AR and recall in fractions, AUC in percent."""
    interval = auc_interval(
        result,
        resamples=settings.resamples,
        confidence=settings.confidence,
        seed=settings.seed,
    )
    return {
        "method": method,
        "protocol": "activitynet",
        "subset": subset,
        "videos": len(result.video_ids),
        "instances": int(result.instances.sum()),
        "proposals": result.proposals,
        "videos_without_proposals": result.missing_videos,
        "proposals_left_out": result.ignored_proposals,
        **{f"AR@{number}": result.at(number) for number in AR_NUMBERS},
        "AUC": result.auc,
        "AUC_interval": list(interval),
        "AN": AVERAGE_NUMBERS.tolist(),
        "AR": result.average_recall.tolist(),
        "recall": {
            f"{tiou:.2f}": row
            for tiou, row in zip(TIOU_THRESHOLDS, result.recall.tolist(), strict=True)
        },
    }


def thumos14_record(method: str, subset: str, result: Thumos14Recall) -> dict[str, Any]:
    """Return the figures of THUMOS14's protocol, in fractions; AR@ is None beyond the lists.

    `videos` and `instances` are those that take part: videos without proposals do not.
    """
    return {
        "method": method,
        "protocol": "thumos14",
        "subset": subset,
        "videos": len(result.video_ids),
        "instances": int(result.instances.sum()),
        "proposals": result.proposals,
        "videos_without_proposals": result.missing_videos,
        "proposals_left_out": result.ignored_proposals,
        **result.scores(),
        "AN": result.average_numbers.tolist(),
        "AR": result.average_recall.tolist(),
        "recall": {
            f"{tiou:.2f}": row
            for tiou, row in zip(thumos14.TIOU_THRESHOLDS, result.recall.tolist(), strict=True)
        },
    }


def detection_record(method: str, subset: str, result: DetectionPrecision) -> dict[str, Any]:
    """Return the figures of detections of one class, in fractions."""
    return {
        "method": method,
        "protocol": "detection",
        "subset": subset,
        "videos": result.videos,
        "instances": result.instances,
        "proposals": result.proposals,
        "proposals_left_out": result.ignored_proposals,
        **result.scores(),
    }


def read_records(paths: Sequence[Path]) -> list[Record]:
    """Read evaluation records, in the order given.

    Raises:
        InputError: A file is not one, two name one method, or they score different videos.
    """
    records: list[Record] = []
    for path in paths:
        record = read_json(path)
        needed = ("method", "subset", "videos", "instances", "AN", "AR", "recall", *SUMMARY_KEYS)
        missing = [key for key in needed if not isinstance(record, dict) or key not in record]
        if not missing:
            scores = record.get("detection", {})
            missing = [f"detection: {key}" for key in DETECTION_KEYS if key not in scores]
        if missing:
            raise InputError(f"{path}: not an evaluation: no {missing[0]!r}")
        for earlier, other in zip(paths, records, strict=False):
            if other["method"] == record["method"]:
                raise InputError(f"{path}: method {record['method']!r} is in {earlier} already")
            for key in ("subset", "videos", "instances"):
                if other[key] != record[key]:
                    raise InputError(
                        f"{path}: {key} is {record[key]!r}, but {other[key]!r} in {earlier}; "
                        "only evaluations of the same ground truth stand in one table"
                    )
        records.append(record)
    return records


def summarize(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return `{method: {"AR@1": …, "AUC": …, "AUC_interval": [low, high], "mAP@0.50": …, …}}`."""
    return {
        record["method"]: {
            **{key: record[key] for key in SUMMARY_KEYS},
            **{key: record["detection"][key] for key in DETECTION_KEYS},
        }
        for record in records
    }


def summary_rows(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the table, all in percent with two decimals."""
    columns = ["method", *(f"AR@{number}" for number in AR_NUMBERS), "AUC", "AUC_low", "AUC_high"]
    columns += DETECTION_KEYS
    rows = [
        [record["method"]]
        + [f"{100 * record[f'AR@{number}']:.2f}" for number in AR_NUMBERS]
        + [f"{value:.2f}" for value in (record["AUC"], *record["AUC_interval"])]
        + [f"{100 * record['detection'][key]:.2f}" for key in DETECTION_KEYS]
        for record in records
    ]
    return columns, rows


def summary_markdown(records: Sequence[Record]) -> str:
    """Return the table in Markdown, the best of each column in bold."""
    first = records[0]
    columns, rows = summary_rows(records)
    shown = [column for column in columns[1:] if column not in ("AUC_low", "AUC_high")]
    titles = [column.replace("average_mAP", "average mAP") for column in shown]
    titles.insert(titles.index("AUC") + 1, "interval")
    lines = [
        f"ActivityNet protocol, subset {first['subset']}: {first['videos']} videos, "
        f"{first['instances']} instances. All in percent; interval: bootstrap over videos. "
        "mAP: proposals as detections of one class (average: tIoU 0.5 to 0.95).",
        "",
    ]
    values = {  # unrounded, so that only the best is bold
        key: [
            record["detection"][key] if key in DETECTION_KEYS else record[key] for record in records
        ]
        for key in shown
    }
    table = []
    for number, row in enumerate(rows):
        texts = dict(zip(columns, row, strict=True))
        cells = [
            f"**{texts[key]}**" if values[key][number] == max(values[key]) else texts[key]
            for key in shown
        ]
        cells.insert(shown.index("AUC") + 1, f"{texts['AUC_low']}–{texts['AUC_high']}")
        table.append([texts["method"], *cells])
    lines += markdown_table("l" + "r" * len(titles), ["method", *titles], table)
    return "\n".join(lines) + "\n"
