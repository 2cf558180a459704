"""`actionspan evaluation table`, `claims`, `loss-curves` and `plot-loss`: paper 001's results."""

import argparse
from pathlib import Path

from actionspan.evaluation.records import EvaluationSettings
from actionspan.files.storage import atomic_path, write_tsv
from actionspan.settings import add_settings, from_arguments


def add_parsers(steps: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add these sub-commands to those of `actionspan evaluation`."""
    from actionspan.papers.mtn.published import TABLES

    step = steps.add_parser("table", help="a table of paper 001, ours beside the published")
    step.add_argument("--table", required=True, choices=list(TABLES), help="which")
    _add_scores(step)
    step.set_defaults(run=run_table)

    step = steps.add_parser("claims", help="a verdict on each claim of paper 001")
    _add_scores(step)
    step.add_argument(
        "--logs", type=Path, nargs="+", required=True, help="temporal/{model}[-seedN]/*/log.tsv"
    )
    step.set_defaults(run=run_claims)

    step = steps.add_parser("loss-curves", help="validation losses, mean and range of seeds")
    step.add_argument(
        "--logs", type=Path, nargs="+", required=True, help="temporal/{model}[-seedN]/*/log.tsv"
    )
    step.add_argument("--out-table", type=Path, required=True, help="loss_curves.tsv")
    step.add_argument(
        "--out-markdown", type=Path, required=True, help="the lowest and the last losses, to read"
    )
    _add_words(step)
    add_settings(step, EvaluationSettings)
    step.set_defaults(run=run_loss_curves)

    step = steps.add_parser("plot-loss", help="draw the validation losses")
    step.add_argument("--table", type=Path, required=True, help="loss_curves.tsv")
    step.add_argument("--out", type=Path, required=True, help=".svg or .png")
    step.set_defaults(run=run_plot_loss)


def _add_scores(step: argparse.ArgumentParser) -> None:
    step.add_argument(
        "--videos",
        type=Path,
        nargs="+",
        required=True,
        help="{method}.tsv and {method}-seedN.tsv, the scores by video of each method and seed",
    )
    _add_words(step)
    step.add_argument("--subset", default="validation", help="default: validation")
    step.add_argument("--out-tsv", type=Path, required=True, help="in percent")
    step.add_argument("--out-markdown", type=Path, required=True, help="the same to read")
    add_settings(step, EvaluationSettings)


def _add_words(step: argparse.ArgumentParser) -> None:
    step.add_argument("--features-are", required=True, help="the features, in words")
    step.add_argument("--data-are", required=True, help="the data set, in words")


def run_table(arguments: argparse.Namespace) -> int:
    """Write one table as TSV and Markdown."""
    from actionspan.papers.mtn.tables import (
        MeasuredOn,
        table_caption,
        table_cells,
        table_markdown,
        table_rows,
    )
    from actionspan.papers.mtn.video_scores import read_video_scores

    settings = from_arguments(EvaluationSettings, arguments)
    scores = read_video_scores(arguments.videos)
    measured = MeasuredOn(
        features=arguments.features_are, data=arguments.data_are, subset=arguments.subset
    )
    rows = table_rows(arguments.table, scores, settings)
    caption = table_caption(arguments.table, rows, scores, measured, settings)
    write_tsv(arguments.out_tsv, *table_cells(arguments.table, rows))
    with atomic_path(arguments.out_markdown) as partial:
        partial.write_text(table_markdown(arguments.table, rows, caption), encoding="utf-8")
    return 0


def run_claims(arguments: argparse.Namespace) -> int:
    """Write the verdicts as TSV and Markdown."""
    from actionspan.papers.claims import CLAIM_COLUMNS, claim_cells
    from actionspan.papers.mtn.claims_report import findings_markdown
    from actionspan.papers.mtn.judged import judge_claims
    from actionspan.papers.mtn.tables import MeasuredOn, measured_words
    from actionspan.papers.mtn.validation_losses import read_losses
    from actionspan.papers.mtn.video_scores import read_video_scores

    settings = from_arguments(EvaluationSettings, arguments)
    scores = read_video_scores(arguments.videos)
    measured = MeasuredOn(
        features=arguments.features_are, data=arguments.data_are, subset=arguments.subset
    )
    findings = judge_claims(scores, read_losses(arguments.logs), settings)
    write_tsv(arguments.out_tsv, CLAIM_COLUMNS, claim_cells(findings))
    words = measured_words(scores, measured, settings)
    with atomic_path(arguments.out_markdown) as partial:
        partial.write_text(findings_markdown(findings, words), encoding="utf-8")
    return 0


def run_loss_curves(arguments: argparse.Namespace) -> int:
    """Write the validation losses: every epoch as a table, the lowest and the last in Markdown."""
    from actionspan.papers.mtn.loss_curves_report import losses_markdown
    from actionspan.papers.mtn.validation_losses import read_losses, write_loss_curves

    settings = from_arguments(EvaluationSettings, arguments)
    losses = read_losses(arguments.logs)
    write_loss_curves(arguments.out_table, losses)
    text = losses_markdown(losses, arguments.features_are, arguments.data_are, settings.confidence)
    with atomic_path(arguments.out_markdown) as partial:
        partial.write_text(text, encoding="utf-8")
    return 0


def run_plot_loss(arguments: argparse.Namespace) -> int:
    """Draw the validation losses from their table."""
    from actionspan.papers.mtn.validation_losses import draw_loss_curves, read_loss_curves

    draw_loss_curves(arguments.out, read_loss_curves(arguments.table))
    return 0
