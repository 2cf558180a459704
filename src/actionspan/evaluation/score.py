"""Score a proposals file by a benchmark's protocol, without the workflow."""

import argparse
import json
import sys
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any

from actionspan.arrays import Int64
from actionspan.errors import InputError, counted
from actionspan.evaluation import files, recall, records
from actionspan.evaluation.detection import detection_precision, detection_precision_by_class
from actionspan.evaluation.rows import match_ids
from actionspan.evaluation.settings import EvaluationSettings
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.scratch import VideoTables

_PICKLES = (".pkl", ".pickle")
# of ActionFormer's columns; labels are numbers, to which its annotations give names
_CONVERT = (
    "import json, pickle; r = pickle.load(open({given!r}, 'rb')); "
    "names = {{a['label_id']: a['label'] for v in json.load(open({truth!r}))['database'].values() "
    "for a in v['annotations']}}; out = {{v: [] for v in r['video-id']}}; "
    "columns = zip(*map(r.get, ('video-id', 't-start', 't-end', 'label', 'score'))); "
    "[out[v].append({{'segment': [float(a), float(b)], 'label': names.get(int(l), str(l)), "
    "'score': float(s)}}) for v, a, b, l, s in columns]; "
    "json.dump({{'results': out}}, open({out!r}, 'w'))"
)
_PROTOCOLS = ("activitynet", "thumos14", "detection", "detection_by_class")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "--protocol",
        required=True,
        choices=_PROTOCOLS,
        help="activitynet: AR@AN over tIoU 0.5:0.05:0.95, budgets in percent of each list; "
        "thumos14: AR@AN over tIoU 0.5:0.05:1 in frames, budgets in percent of full lists; "
        "detection: mAP over tIoU 0.5:0.05:0.95, all classes as one; "
        "detection_by_class: its mean over classes, as ActivityNet's detection evaluator",
    )
    ground_truth = (
        "ActivityNet JSON, annotations.json, anet_anno_action.json or "
        "thumos14_test_groundtruth.csv (its videos are the subset validation)"
    )
    parser.add_argument("--ground-truth", type=Path, required=True, help=ground_truth)
    video_info = (
        "video_info_new.csv, the subsets of anet_anno_action.json "
        "(default: the file of that name next to it)"
    )
    parser.add_argument("--video-info", type=Path, help=video_info)
    proposals = "ActivityNet result JSON; detection_by_class: with labels, e.g. detections.json"
    parser.add_argument("--proposals", type=Path, required=True, help=proposals)
    videos = (
        "table of the videos' frame rates, e.g. results/dataset/videos.tsv (thumos14 only; "
        "default: the ground truth, if it is a table that has them)"
    )
    parser.add_argument("--videos", type=Path, help=videos)
    subset = f"default: validation; {files.ALL_SUBSETS}: every video"
    parser.add_argument("--subset", default="validation", help=subset)
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    add_settings(parser, EvaluationSettings)


def run(arguments: argparse.Namespace) -> None:
    """Print the scores."""
    settings = from_arguments(EvaluationSettings, arguments)
    record = _score(arguments, settings)
    print(json.dumps(record) if arguments.json else "\n".join(_lines(record, settings)))


def _score(arguments: argparse.Namespace, settings: EvaluationSettings) -> dict[str, Any]:
    """Return the record of the protocol.

    Raises:
        InputError: A file is not readable, the two have no video in common, or a frame rate that
            is needed is missing.
    """
    ground_truth, videos, subset = arguments.ground_truth, arguments.videos, arguments.subset
    method = arguments.proposals.stem
    if arguments.proposals.suffix in _PICKLES:
        raise InputError(_pickled(arguments.proposals, ground_truth))
    if arguments.protocol == "detection_by_class":
        return score_by_class(
            ground_truth, arguments.proposals, subset, method, arguments.video_info
        )
    truth, given = read_scored(ground_truth, arguments.proposals, subset, arguments.video_info)
    rates = _frame_rates(ground_truth, videos) if arguments.protocol == "thumos14" else {}
    with files.blaming(videos or ground_truth):
        if arguments.protocol == "thumos14":
            in_frames = recall.average_recall_thumos14(truth, given, rates)
            return records.thumos14_record(method, subset, in_frames)
        if arguments.protocol == "detection":
            return records.detection_record(method, subset, detection_precision(truth, given))
        result = recall.average_recall_activitynet(truth, given)
    if warning := _unequal_lists(result.given):
        print(f"{arguments.proposals}: {warning}", file=sys.stderr)
    return records.evaluation_record(method, subset, result, settings)


def _pickled(given: Path, truth: Path) -> str:
    """Return why a pickle of results is refused, and the command that converts ActionFormer's."""
    out = given.with_suffix(".json")
    command = _CONVERT.format(given=str(given), truth=str(truth), out=str(out))
    cure = f'if you trust it: python -c "{command}", then score {out}'
    return f"{given}: a pickle can run any code, so it is not read; {cure}"


def _unequal_lists(given: Int64) -> str:
    """Return a warning where the lists of videos (V,) differ in length, else an empty text.

    The protocol takes a percentage of each list and truncates it, so that at AN = 1 a list shorter
    than the mean contributes nothing.
    """
    lengths = given[given > 0]
    if not len(lengths) or lengths.min() == lengths.max():
        return ""
    kept, shares = recall.kept_proposals(given)
    silent = int((recall.contributed(kept, shares[0])[given > 0] == 0).sum())
    return (
        f"lists of {lengths.min()} to {lengths.max()} proposals: at AN = 1 the protocol counts no "
        f"proposal of {silent:,} of {len(lengths):,} videos; give each video equally many"
    )


def score_by_class(
    ground_truth: Path, detections: Path, subset: str, method: str, video_info: Path | None = None
) -> dict[str, Any]:
    """Return the record of labelled detections.

    Raises:
        InputError: A file is not readable, a detection has no label, two ids of the detections mean
            one video, or the two have no video in common.
    """
    truth = files.read_labelled_truth(ground_truth, subset, video_info)
    given = files.read_detections(detections)
    check_common(truth, given, ground_truth, detections, subset)
    result = detection_precision_by_class(truth, given)
    return records.detection_by_class_record(method, subset, result)


def read_scored(
    ground_truth: Path, proposals: Path, subset: str, video_info: Path | None = None
) -> tuple[VideoTables, VideoTables]:
    """Read ground truth and proposals that can be scored against each other.

    Raises:
        InputError: A file is not readable, two ids of the proposals mean one video, or the two
            have no video in common.
    """
    truth = files.read_ground_truth(ground_truth, subset, video_info)
    given = files.read_proposals(proposals)
    check_common(truth, given, ground_truth, proposals, subset)
    return truth, given


def check_common(
    truth: Mapping[str, Sized],
    given: Mapping[str, Sized],
    ground_truth: Path,
    proposals: Path,
    subset: str,
) -> None:
    """Check that the two files have a video in common.

    Raises:
        InputError: They have none, or two ids of the proposals mean one video.
    """
    with files.blaming(proposals):
        matched = match_ids(given, truth)
    if any(map(len, given.values())) and not any(
        len(given[name]) and len(truth[video]) for name, video in matched.items()
    ):
        raise InputError(
            f"{proposals}: none of its videos (e.g. {next(iter(given))!r}) is in "
            f"subset {subset!r} of {ground_truth} (e.g. {next(iter(truth))!r})"
        )


def _frame_rates(ground_truth: Path, videos: Path | None) -> dict[str, float]:
    """Read the frame rates from their own table, or from the ground truth."""
    table = videos or (ground_truth if ground_truth.suffix.lower() in (".csv", ".tsv") else None)
    rates = files.read_frame_rates(table) if table else {}
    if not rates:
        raise InputError(
            f"{table or ground_truth}: no frame rates, which thumos14 needs; give --videos with a "
            "table of video_id and fps (results/dataset/videos.tsv)"
        )
    return rates


def _lines(record: Mapping[str, Any], settings: EvaluationSettings) -> list[str]:
    """Return the record as a few lines to read."""
    is_detection = record["protocol"].startswith("detection")
    lines = [
        f"{record['protocol']}, subset {record['subset']}: {counted(record['videos'], 'video')}, "
        f"{counted(record['instances'], 'instance')}, {counted(record['proposals'], 'proposal')}"
    ]
    if missing := record.get("videos_without_proposals", 0):
        take = "take no part" if record["protocol"] == "thumos14" else "misses"
        lines.append(f"{counted(missing, 'video')} without proposals: {take}")
    if record["proposals_left_out"]:
        why = "" if is_detection else " or have no instance"
        lines.append(
            f"{record['proposals_left_out']:,} proposals left out: their videos are not in the "
            f"subset{why}"
        )
    if record.get("unknown_labels"):
        lines.append(f"{record['unknown_labels']:,} left out: no instance has their label")
    if is_detection:
        columns = [*(f"mAP@{tiou}" for tiou in recall.SCORE_COLUMNS), "average_mAP"]
    else:
        columns = [name for name in record if name.startswith("AR@")]
    cells = ["–" if record[name] is None else f"{100 * record[name]:.2f}" for name in columns]
    names = [name.replace("_", " ") for name in columns]
    if record["protocol"] == "activitynet":
        low, high = record["AUC_interval"]
        names += ["AUC", f"{settings.confidence:.0%} interval"]
        cells += [f"{record['AUC']:.2f}", f"{low:.2f}–{high:.2f}"]
    widths = [max(len(name), len(cell), 6) + 2 for name, cell in zip(names, cells, strict=True)]
    for row in (names, cells):
        lines.append("".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)))
    lines.insert(-2, "")
    return lines
