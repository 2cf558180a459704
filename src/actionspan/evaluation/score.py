"""`actionspan score`: score a proposals file by a benchmark's protocol, workflow or not."""

import argparse
import json
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.evaluation.activitynet import average_recall_activitynet
from actionspan.evaluation.files import ALL_SUBSETS, read_ground_truth, read_proposals
from actionspan.evaluation.summary import AR_NUMBERS, EvaluationSettings, evaluation_record
from actionspan.settings import add_arguments, from_arguments


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `actionspan score`."""
    parser.add_argument(
        "--protocol",
        required=True,
        choices=["activitynet"],
        help="activitynet: AR@AN over tIoU 0.5:0.05:0.95, budgets in percent of each list",
    )
    parser.add_argument(
        "--ground-truth",
        type=Path,
        required=True,
        help="ActivityNet JSON, annotations.json or anet_anno_action.json",
    )
    parser.add_argument(
        "--video-info",
        type=Path,
        help="video_info_new.csv, the subsets of anet_anno_action.json "
        "(default: the file of that name beside it)",
    )
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument(
        "--subset", default="validation", help=f"default: validation; {ALL_SUBSETS}: every video"
    )
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    add_arguments(parser, EvaluationSettings)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the scores."""
    settings = from_arguments(EvaluationSettings, arguments)
    record = score_files(
        arguments.ground_truth,
        arguments.proposals,
        subset=arguments.subset,
        method=arguments.proposals.stem,
        settings=settings,
        video_info=arguments.video_info,
    )
    print(json.dumps(record) if arguments.json else _table(record, settings))
    return 0


def score_files(
    ground_truth: Path,
    proposals: Path,
    *,
    subset: str,
    method: str,
    settings: EvaluationSettings,
    video_info: Path | None = None,
) -> dict[str, Any]:
    """Score a proposals file against a ground-truth file.

    Raises:
        InputError: A file is not readable, or the two have no video in common.
    """
    truth = read_ground_truth(ground_truth, subset, video_info)
    given = read_proposals(proposals)
    try:
        result = average_recall_activitynet(truth, given)
    except ValueError as error:
        raise InputError(f"{proposals}: {error}") from None
    if result.ignored_proposals and not result.proposals:
        raise InputError(
            f"{proposals}: none of its videos (e.g. {next(iter(given))!r}) is among those of "
            f"subset {subset!r} of {ground_truth} (e.g. {next(iter(truth))!r})"
        )
    return evaluation_record(method, subset, result, settings)


def _table(record: dict[str, Any], settings: EvaluationSettings) -> str:
    """Return the record as a few lines to read."""
    numbers = [f"AR@{number}" for number in AR_NUMBERS]
    low, high = record["AUC_interval"]
    lines = [
        f"{record['protocol']}, subset {record['subset']}: {record['videos']:,} videos, "
        f"{record['instances']:,} instances, {record['proposals']:,} proposals",
    ]
    if record["videos_without_proposals"]:
        lines.append(f"{record['videos_without_proposals']:,} videos have no proposals: misses")
    if record["proposals_left_out"]:
        lines.append(
            f"{record['proposals_left_out']:,} proposals left out: their videos are not in the "
            "subset or have no instance"
        )
    lines += [
        "",
        "".join(f"{name:>8}" for name in [*numbers, "AUC"])
        + f"{settings.confidence:>9.0%} interval",
        "".join(f"{100 * record[name]:8.2f}" for name in numbers)
        + f"{record['AUC']:8.2f}{f'{low:.2f}–{high:.2f}':>18}",
    ]
    return "\n".join(lines)
