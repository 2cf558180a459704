"""AR@AN, AUC and mAP of one method's proposals."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.evaluation import recall
from actionspan.evaluation.detection import detection_precision
from actionspan.evaluation.files import read_frame_rates
from actionspan.evaluation.records import AR_NUMBERS, evaluation_record
from actionspan.evaluation.score import read_scored
from actionspan.evaluation.settings import EvaluationSettings
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.writing import write_json, write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--method", help="the method's name (default: the stem of --out)")
    parser.add_argument(
        "--videos", type=Path, help="videos.tsv, for the frame rates of THUMOS14's protocol"
    )
    folds = "of how many folds `evaluation pool` joined the proposals (default: of no folds)"
    parser.add_argument("--folds", type=int, default=0, help=folds)
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


_VIDEO_NUMBERS = recall.THUMOS14_NUMBERS[:4]
VIDEO_COLUMNS = (
    *("video_id", "instances", "proposals"),
    *(f"AR@{number}" for number in AR_NUMBERS),
    "AUC",
    *(f"thumos14_AR@{number}" for number in _VIDEO_NUMBERS),
)

VideoRow = list[str | int | float | None]


def evaluate_files(
    annotations: Path,
    proposals: Path,
    *,
    subset: str,
    method: str,
    settings: EvaluationSettings,
    videos: Path | None = None,
) -> tuple[dict[str, Any], Iterator[VideoRow]]:
    """Return the record of one method's proposals by all protocols, and the rows of its videos.

    `videos` is videos.tsv, for the frame rates that THUMOS14's protocol needs. Without it, or where
    it lacks the rate of a video, the values of that protocol are None.

    Raises:
        InputError: A file is not readable, the two have no video in common, or two ids of
            videos.tsv mean one video.
    """
    truth, given = read_scored(annotations, proposals, subset)
    # what takes most memory first, and the proposals go before the last part
    detection = detection_precision(truth, given).scores()
    result = recall.average_recall_activitynet(truth, given)
    in_frames = None
    if videos is not None:
        try:
            in_frames = recall.average_recall_thumos14(truth, given, read_frame_rates(videos))
        except recall.FrameRateError as error:  # external features have no rate
            print(f"{videos}: {error}: no values of THUMOS14's protocol", file=sys.stderr)
        except ValueError as error:
            raise InputError(f"{videos}: {error}") from None
    del truth, given
    unknown = {f"AR@{number}": None for number in recall.THUMOS14_NUMBERS}
    record = {
        **evaluation_record(method, subset, result, settings),
        "thumos14": in_frames.scores() if in_frames else unknown,
        "detection": detection,
    }
    return record, video_rows(result, in_frames)


def video_rows(
    result: recall.AverageRecall, in_frames: recall.Thumos14Recall | None
) -> Iterator[VideoRow]:
    """Yield a row of `VIDEO_COLUMNS` for each video, the worst recall at AN = 100 first.

    A video's value is the mean over its instances and the thresholds, at the budgets that the
    full set gives it. So the mean over videos, weighted by their instances, is the value of the
    record (in THUMOS14's protocol over the videos that take part).
    """
    curves = _video_means(result)  # (V, 100)
    frames: list[Float64 | None] = [None] * len(_VIDEO_NUMBERS)  # (V',) each
    places: dict[str, int] = {}
    if in_frames is not None and in_frames.video_ids:
        means = _video_means(in_frames)
        frames = [
            recall.between(means, in_frames.average_numbers, number) for number in _VIDEO_NUMBERS
        ]
        places = {video: place for place, video in enumerate(in_frames.video_ids)}
    by_id = np.array(sorted(range(len(curves)), key=result.video_ids.__getitem__), np.int64)
    worst_first = by_id[np.argsort(curves[by_id, AR_NUMBERS[-1] - 1], kind="stable")]
    for row in worst_first.tolist():
        video, curve = result.video_ids[row], curves[row]
        place = places.get(video)
        of_frames = [
            None if column is None or place is None else float(column[place]) for column in frames
        ]
        yield [
            *(video, int(result.instances[row]), int(result.given[row])),
            *(float(curve[number - 1]) for number in AR_NUMBERS),
            *(recall.area_under_curve(curve), *of_frames),
        ]


def _video_means(result: recall.Recall) -> Float64:
    """Return the (V, 100) mean hits of each video's instances."""
    means = result.sums_by_video(result.hits)
    means /= result.instances[:, None]
    return means
