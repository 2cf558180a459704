"""Candidates to ranked proposals (PEM and Soft-NMS)."""

import argparse
from pathlib import Path

from actionspan.proposals.settings import RankingSettings, SuppressionSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--candidates", type=Path, required=True, help="candidates.h5")
    parser.add_argument("--evaluator", type=Path, required=True, help="pem.pt")
    parser.add_argument("--out-json", type=Path, required=True, help="ActivityNet form to write")
    parser.add_argument("--out-csv", type=Path, help="table to write")
    parser.add_argument("--classifier", type=Path, help="classifier.pt; without it, no labels")
    parser.add_argument("--features", type=Path, help="features.h5, which the classifier sees")
    add_settings(parser, RankingSettings)
    add_settings(parser, SuppressionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Rank the candidates of all videos and write their proposals."""
    from actionspan.proposals.candidates import open_candidates
    from actionspan.proposals.evaluator import load_evaluator, rank_candidates
    from actionspan.proposals.segment_classifier import optional_labeller
    from actionspan.proposals.segments import Row, result_rows, write_proposals
    from actionspan.running.progress import progress

    settings = from_arguments(SuppressionSettings, arguments)
    ranking = from_arguments(RankingSettings, arguments)
    evaluator = load_evaluator(arguments.evaluator)
    table = open_candidates(arguments.candidates)
    labeller = optional_labeller(arguments.features, arguments.classifier)

    def rows(index: int) -> list[Row]:
        duration = float(table.duration_seconds[index])
        ranked = rank_candidates(table.video(index), duration, evaluator, settings, ranking)
        proposals = result_rows(*ranked)
        return labeller.label(table.video_id[index], proposals) if labeller else proposals

    videos = progress(range(len(table.video_id)), "proposals", len(table.video_id))
    results = ((table.video_id[index], rows(index)) for index in videos)
    write_proposals(results, arguments.out_json, arguments.out_csv, labelled=labeller is not None)
