"""AR@AN, AUC and mAP of one method's proposals."""

import argparse
from pathlib import Path

from actionspan.evaluation.records import EvaluationSettings
from actionspan.evaluation.scoring import VIDEO_COLUMNS, evaluate_files
from actionspan.files.storage import write_json, write_tsv
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--method", help="the method's name (default: the stem of --out)")
    parser.add_argument(
        "--videos", type=Path, help="videos.tsv, for the frame rates of THUMOS14's protocol"
    )
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        help="of how many folds `evaluation pool` joined the proposals (default: of no folds)",
    )
    parser.add_argument("--out", type=Path, required=True, help="evaluation/{method}.json")
    parser.add_argument("--out-videos", type=Path, help="the same for each video, as a table")
    add_settings(parser, EvaluationSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the evaluation record of one method, and the table of its videos."""
    record, rows = evaluate_files(
        arguments.annotations,
        arguments.proposals,
        subset=arguments.subset,
        method=arguments.method or arguments.out.stem,
        settings=from_arguments(EvaluationSettings, arguments),
        videos=arguments.videos,
    )
    if arguments.folds:
        record["folds"] = arguments.folds
    if arguments.out_videos is not None:
        write_tsv(arguments.out_videos, VIDEO_COLUMNS, rows)
    write_json(arguments.out, record)
