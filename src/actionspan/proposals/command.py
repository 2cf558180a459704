"""The commands `actionspan proposals …`."""

import argparse
import sys
from pathlib import Path

from actionspan.errors import InputError
from actionspan.proposals.settings import (
    CandidateSettings,
    ChapterSettings,
    EvaluatorSettings,
    RankingSettings,
    SuppressionSettings,
)
from actionspan.settings import add_arguments, from_arguments


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the steps of the stage to its parser."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    step = steps.add_parser("candidates", help="boundary probabilities to candidates (PGM)")
    step.add_argument("--probabilities", type=Path, required=True, help="probabilities.h5")
    step.add_argument("--out", type=Path, required=True, help="candidates.h5 to write")
    add_arguments(step, CandidateSettings)
    step.set_defaults(run=run_candidates)

    step = steps.add_parser("train", help="train the evaluator of candidates (PEM)")
    step.add_argument("--candidates", type=Path, required=True, help="candidates.h5")
    step.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    step.add_argument("--out", type=Path, required=True, help="pem.pt to write")
    step.add_argument("--out-log", type=Path, help="table of losses to write, one row an epoch")
    add_arguments(step, EvaluatorSettings)
    step.set_defaults(run=run_train)

    step = steps.add_parser("generate", help="candidates to ranked proposals (PEM and Soft-NMS)")
    step.add_argument("--candidates", type=Path, required=True, help="candidates.h5")
    step.add_argument("--evaluator", type=Path, required=True, help="pem.pt")
    step.add_argument("--out-json", type=Path, required=True, help="ActivityNet form to write")
    step.add_argument("--out-csv", type=Path, help="table to write")
    add_arguments(step, RankingSettings)
    add_arguments(step, SuppressionSettings)
    step.set_defaults(run=run_generate)

    step = steps.add_parser("suppress", help="Soft-NMS on any proposals in ActivityNet form")
    step.add_argument("--proposals", type=Path, required=True, help="ActivityNet form to read")
    step.add_argument(
        "--annotations",
        type=Path,
        help="annotations in ActivityNet form, for the videos' durations; without them a video "
        "lasts to the end of its last proposal",
    )
    step.add_argument("--out", type=Path, required=True, help="ActivityNet form to write")
    add_arguments(step, SuppressionSettings)
    step.set_defaults(run=run_suppress)

    step = steps.add_parser("bundle", help="one file with all that `actionspan propose` needs")
    step.add_argument("--features", type=Path, required=True, help="features.h5")
    step.add_argument("--temporal", type=Path, required=True, help="the network's model.pt")
    step.add_argument("--evaluator", type=Path, required=True, help="pem.pt")
    step.add_argument(
        "--settings", required=True, help="JSON object of the sections frames, flow, encoders, …"
    )
    step.add_argument("--out", type=Path, required=True, help="model.pt to write")
    step.set_defaults(run=run_bundle)

    step = steps.add_parser("chapters", help="the best proposals as WebVTT chapters for players")
    step.add_argument("--proposals", type=Path, required=True, help="proposals.json")
    step.add_argument(
        "--videos",
        nargs="+",
        metavar="ID",
        help="video ids (default: all); one without proposals gets no chapter",
    )
    step.add_argument("--out-folder", type=Path, required=True, help="folder for ID.vtt files")
    add_arguments(step, ChapterSettings)
    step.set_defaults(run=run_chapters)


def run_candidates(arguments: argparse.Namespace) -> int:
    """Make candidates.h5 of probabilities.h5."""
    from actionspan.proposals.store import write_candidates

    settings = from_arguments(CandidateSettings, arguments)
    write_candidates(arguments.probabilities, arguments.out, settings)
    return 0


def run_train(arguments: argparse.Namespace) -> int:
    """Train the evaluator on the training subset's candidates and log the losses."""
    from actionspan.dataset.tables import read_annotations
    from actionspan.files.storage import digest, write_tsv
    from actionspan.proposals.evaluator import save_evaluator
    from actionspan.proposals.examples import examples_of
    from actionspan.proposals.store import open_candidates
    from actionspan.proposals.training import Epoch, train_evaluator

    settings = from_arguments(EvaluatorSettings, arguments)
    table = open_candidates(arguments.candidates)
    annotations = read_annotations(arguments.annotations)
    limit, scores = settings.training_candidates, settings.boundary_scores
    training = examples_of(table, annotations, "training", limit, scores)
    validation = examples_of(table, annotations, "validation", limit, scores)
    if not len(training.rows):
        print(
            f"{arguments.candidates}: no candidates of training videos; the evaluator will answer "
            "0.5 everywhere and proposals are ranked by p_start * p_end",
            file=sys.stderr,
        )

    def report(epoch: Epoch) -> None:
        print(
            f"epoch {epoch.epoch}/{settings.epochs}: {epoch.sampled} candidates, "
            f"training loss {epoch.training_loss:.5f}, "
            f"validation loss {epoch.validation_loss:.5f}",
            file=sys.stderr,
        )

    evaluator, log = train_evaluator(training, validation, settings, report)
    save_evaluator(arguments.out, evaluator, digest(settings, table.digest))
    if arguments.out_log is not None:
        columns = list(Epoch.__dataclass_fields__)
        write_tsv(
            arguments.out_log, columns, [[getattr(row, name) for name in columns] for row in log]
        )
    return 0


def run_generate(arguments: argparse.Namespace) -> int:
    """Rank the candidates of all videos and write their proposals."""
    from actionspan.proposals.evaluator import load_evaluator
    from actionspan.proposals.ranking import rank_candidates
    from actionspan.proposals.store import open_candidates
    from actionspan.proposals.writing import result_rows, write_proposals
    from actionspan.running.progress import progress

    settings = from_arguments(SuppressionSettings, arguments)
    ranking = from_arguments(RankingSettings, arguments)
    evaluator = load_evaluator(arguments.evaluator)
    table = open_candidates(arguments.candidates)
    videos = progress(range(len(table.video_id)), "proposals", len(table.video_id))
    results = (
        (
            table.video_id[index],
            result_rows(
                *rank_candidates(
                    table.video(index),
                    float(table.duration_seconds[index]),
                    evaluator,
                    settings,
                    ranking,
                )
            ),
        )
        for index in videos
    )
    write_proposals(results, arguments.out_json, arguments.out_csv)
    return 0


def run_suppress(arguments: argparse.Namespace) -> int:
    """Apply Soft-NMS to a file of proposals."""
    from actionspan.dataset.tables import read_annotations
    from actionspan.proposals.reading import read_proposals
    from actionspan.proposals.suppression import suppress_rows
    from actionspan.proposals.writing import write_proposals

    settings = from_arguments(SuppressionSettings, arguments)
    given = read_proposals(arguments.proposals)
    durations: dict[str, float] = {}
    if arguments.annotations is not None:
        known = read_annotations(arguments.annotations)
        durations = {video.video_id: video.duration_seconds for video in known}
        missing = sorted(set(given) - set(durations))
        if missing:
            raise InputError(
                f"{arguments.annotations}: no video {missing[0]!r}, which {arguments.proposals} has"
            )
    results = (
        (video_id, suppress_rows(rows, durations.get(video_id), settings))
        for video_id, rows in given.items()
    )
    write_proposals(results, arguments.out)
    return 0


def run_bundle(arguments: argparse.Namespace) -> int:
    """Collect a trained model into one file."""
    import json

    from actionspan.proposals.model_bundle import write_bundle

    try:
        settings = json.loads(arguments.settings)
    except json.JSONDecodeError as error:
        raise InputError(f"--settings: not JSON: {error.msg}") from None
    write_bundle(
        arguments.features, arguments.temporal, arguments.evaluator, settings, arguments.out
    )
    return 0


def run_chapters(arguments: argparse.Namespace) -> int:
    """Write a WebVTT file for each video."""
    from actionspan.proposals.reading import read_proposals
    from actionspan.proposals.webvtt import write_chapters

    settings = from_arguments(ChapterSettings, arguments)
    results = read_proposals(arguments.proposals)
    video_ids = list(results) if arguments.videos is None else arguments.videos
    for video_id in video_ids:
        if not video_id or Path(video_id).name != video_id:
            raise InputError(f"{arguments.proposals}: video {video_id!r} is not a file name")
        write_chapters(
            arguments.out_folder / f"{video_id}.vtt", results.get(video_id, []), settings
        )
    return 0
