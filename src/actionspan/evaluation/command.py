"""`actionspan evaluation`: baselines, scores, the table of methods, and the figures."""

import argparse
import sys
from pathlib import Path

import numpy as np

from actionspan.dataset.tables import read_annotations
from actionspan.errors import InputError
from actionspan.evaluation import analysis_command
from actionspan.evaluation.files import read_proposals
from actionspan.evaluation.records import (
    EvaluationSettings,
    read_records,
    summarize,
    summary_markdown,
    summary_rows,
)
from actionspan.evaluation.scoring import VIDEO_COLUMNS, evaluate_files
from actionspan.files.storage import atomic_path, write_json, write_tsv
from actionspan.proposals.writing import result_rows, write_proposals
from actionspan.settings import add_arguments, from_arguments
from actionspan.temporal.probabilities import video_probabilities


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands of `actionspan evaluation`."""
    from actionspan.evaluation.baselines import METHODS, BaselineSettings
    from actionspan.proposals.settings import SuppressionSettings

    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    step = steps.add_parser("baseline", help="proposals by simpler means than a method's")
    step.add_argument("--method", required=True, choices=METHODS, help="which baseline")
    step.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    step.add_argument(
        "--features",
        type=Path,
        nargs="?",
        help="features.h5, for its frame differences (difference only)",
    )
    step.add_argument(
        "--probabilities",
        type=Path,
        nargs="?",
        help="probabilities.h5, for its actionness (tag only)",
    )
    step.add_argument("--subset", default="validation", help="whose videos (default: validation)")
    step.add_argument("--out-json", type=Path, required=True, help="ActivityNet result JSON")
    step.add_argument("--out-csv", type=Path, required=True, help="the same as a table")
    add_arguments(step, BaselineSettings)
    # of difference and tag; --proposals says how many are kept
    add_arguments(step, SuppressionSettings, without=["keep"])
    step.set_defaults(run=run_baseline)

    step = steps.add_parser("evaluate", help="AR@AN, AUC and mAP of one method's proposals")
    step.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    step.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    step.add_argument("--subset", default="validation", help="default: validation")
    step.add_argument("--method", help="the method's name (default: the stem of --out)")
    step.add_argument(
        "--videos", type=Path, help="videos.tsv, for the frame rates of THUMOS14's protocol"
    )
    step.add_argument("--out", type=Path, required=True, help="evaluation/{method}.json")
    step.add_argument("--out-videos", type=Path, help="the same for each video, as a table")
    add_arguments(step, EvaluationSettings)
    step.set_defaults(run=run_evaluate)

    step = steps.add_parser("summary", help="one table of all methods")
    step.add_argument(
        "--evaluations", type=Path, nargs="+", required=True, help="in the order of the table"
    )
    step.add_argument("--out-json", type=Path, required=True, help="{method: {AR@1: …, AUC: …}}")
    step.add_argument("--out-tsv", type=Path, required=True, help="in percent")
    step.add_argument("--out-markdown", type=Path, required=True, help="in percent")
    step.set_defaults(run=run_summary)

    step = steps.add_parser("curves", help="the table the recall curves are drawn from")
    step.add_argument("--evaluations", type=Path, nargs="+", required=True, help="of all methods")
    step.add_argument("--out-table", type=Path, required=True, help="method, kind, x, y")
    step.set_defaults(run=run_curves)

    step = steps.add_parser("plot-curves", help="draw the recall curves")
    step.add_argument("--table", type=Path, required=True, help="recall_curves.tsv")
    step.add_argument("--out", type=Path, required=True, help=".svg or .png")
    step.set_defaults(run=run_plot_curves)

    analysis_command.add_parsers(steps)

    step = steps.add_parser("timeline", help="draw one video's curves, truth and proposals")
    step.add_argument("--video", required=True, help="the video's id")
    step.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    step.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    step.add_argument("--probabilities", type=Path, help="probabilities.h5, if a model made them")
    step.add_argument("--out", type=Path, required=True, help=".svg or .png")
    step.set_defaults(run=run_timeline)


def run_baseline(arguments: argparse.Namespace) -> int:
    """Write the proposals of one baseline for every video of a subset."""
    from actionspan.evaluation.baselines import (
        NO_LENGTHS,
        BaselineSettings,
        actionness_proposals,
        motion_proposals,
        random_proposals,
        relative_lengths,
        sliding_windows,
    )
    from actionspan.evaluation.signals import actionness, frame_differences
    from actionspan.proposals.settings import SuppressionSettings

    settings = from_arguments(BaselineSettings, arguments)
    suppression = from_arguments(SuppressionSettings, arguments, keep=settings.proposals)
    annotations = read_annotations(arguments.annotations)
    videos = [known for known in annotations if known.subset == arguments.subset]
    if not videos:
        raise InputError(f"{arguments.annotations}: no video of subset {arguments.subset!r}")
    if arguments.method == "random":
        made = [
            random_proposals(video.video_id, video.duration_seconds, settings) for video in videos
        ]
    elif arguments.method == "sliding":
        lengths = (
            relative_lengths(annotations) if settings.window_prior == "training" else NO_LENGTHS
        )
        made = [sliding_windows(video.duration_seconds, lengths, settings) for video in videos]
    elif arguments.method == "difference":
        if arguments.features is None:
            raise InputError("--method difference needs --features features.h5")
        made = [
            motion_proposals(signal, video.duration_seconds, suppression)
            for signal, video in zip(
                frame_differences(arguments.features, videos), videos, strict=True
            )
        ]
    else:
        if arguments.probabilities is None:
            raise InputError("--method tag needs --probabilities probabilities.h5")
        made = [
            actionness_proposals(signal, video.duration_seconds, suppression)
            for signal, video in zip(
                actionness(arguments.probabilities, videos), videos, strict=True
            )
        ]
    write_proposals(
        (
            (video.video_id, result_rows(segments, scores))
            for video, (segments, scores) in zip(videos, made, strict=True)
        ),
        arguments.out_json,
        arguments.out_csv,
    )
    return 0


def run_evaluate(arguments: argparse.Namespace) -> int:
    """Write the evaluation record of one method, and the table of its videos."""
    record, rows = evaluate_files(
        arguments.annotations,
        arguments.proposals,
        subset=arguments.subset,
        method=arguments.method or arguments.out.stem,
        settings=from_arguments(EvaluationSettings, arguments),
        videos=arguments.videos,
    )
    if arguments.out_videos is not None:
        write_tsv(arguments.out_videos, VIDEO_COLUMNS, rows)
    write_json(arguments.out, record)
    return 0


def run_summary(arguments: argparse.Namespace) -> int:
    """Write the table of all methods as JSON, TSV and Markdown."""
    records = read_records(arguments.evaluations)
    write_json(arguments.out_json, summarize(records))
    write_tsv(arguments.out_tsv, *summary_rows(records))
    with atomic_path(arguments.out_markdown) as partial:
        partial.write_text(summary_markdown(records), encoding="utf-8")
    return 0


def run_curves(arguments: argparse.Namespace) -> int:
    """Write the table of recall curves."""
    from actionspan.evaluation.recall_curves import write_curves

    write_curves(arguments.out_table, read_records(arguments.evaluations))
    return 0


def run_plot_curves(arguments: argparse.Namespace) -> int:
    """Draw the recall curves from their table."""
    from actionspan.evaluation.recall_curves import draw_curves, read_curves

    draw_curves(arguments.out, read_curves(arguments.table))
    return 0


def run_timeline(arguments: argparse.Namespace) -> int:
    """Draw one video's timeline; one that was left out of the data set has an empty figure."""
    from actionspan.evaluation.timeline_figure import draw_timeline

    video_id = arguments.video
    known = {video.video_id: video for video in read_annotations(arguments.annotations)}
    rows = read_proposals(arguments.proposals).get(video_id, np.empty((0, 3)))
    if video_id not in known:
        print(f"{arguments.annotations}: no video {video_id!r}: it was left out", file=sys.stderr)
        draw_timeline(arguments.out, f"{video_id} (left out)", 1.0, None, (), rows, rows[:, 2])
        return 0
    probabilities = None  # also where the video's decoding broke off: it has no features
    if arguments.probabilities is not None:
        probabilities = video_probabilities(arguments.probabilities, video_id)
    draw_timeline(
        arguments.out,
        video_id,
        known[video_id].duration_seconds,
        probabilities,
        known[video_id].instances,
        rows[:, :2],
        rows[:, 2],
    )
    return 0
