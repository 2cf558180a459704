"""Candidates to ranked proposals (PEM and Soft-NMS)."""

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from actionspan.proposals.settings import RankingSettings, SuppressionSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--candidates", type=Path, required=True, help="candidates.h5")
    parser.add_argument("--evaluator", type=Path, required=True, help="pem.safetensors")
    parser.add_argument("--out-json", type=Path, required=True, help="ActivityNet form to write")
    parser.add_argument("--out-csv", type=Path, help="table to write")
    parser.add_argument(
        "--classifier", type=Path, help="classifier.safetensors; without it, no labels"
    )
    parser.add_argument("--features", type=Path, help="features.h5, which the classifier sees")
    add_settings(parser, RankingSettings)
    add_settings(parser, SuppressionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Rank the candidates of all videos and write their proposals."""
    from actionspan.jobs.progress import progress
    from actionspan.proposals.candidates import open_candidates
    from actionspan.proposals.evaluator import load_evaluator, rank_all
    from actionspan.proposals.segment_classifier import optional_labeller
    from actionspan.proposals.segments import Row, result_rows, write_proposals
    from actionspan.proposals.suppression import TOGETHER

    settings = from_arguments(SuppressionSettings, arguments)
    ranking = from_arguments(RankingSettings, arguments)
    evaluator = load_evaluator(arguments.evaluator)
    table = open_candidates(arguments.candidates)
    labeller = optional_labeller(arguments.features, arguments.classifier)

    def rows(part: Sequence[int]) -> Iterator[tuple[str, list[Row]]]:
        durations = table.duration_seconds[list(part)].tolist()
        videos = zip(map(table.video, part), durations, strict=True)
        ranked = rank_all(videos, evaluator, settings, ranking)
        for index, found in zip(part, ranked, strict=True):
            video_id, proposals = table.video_id[index], result_rows(*found)
            yield video_id, labeller.label(video_id, proposals) if labeller else proposals

    count = len(table.video_id)
    parts = (range(count)[first : first + TOGETHER] for first in range(0, count, TOGETHER))
    results = progress(chain.from_iterable(map(rows, parts)), "proposals", count)
    write_proposals(results, arguments.out_json, arguments.out_csv, labelled=labeller is not None)
