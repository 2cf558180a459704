"""What the scores of one method mean: a table, a page and a figure."""

import argparse
from pathlib import Path

from actionspan.evaluation.analysis import add_inputs, judge_inputs
from actionspan.files.storage import write_text, write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_inputs(parser)
    parser.add_argument("--out-table", type=Path, required=True, help="quality by bins of scores")


def run(arguments: argparse.Namespace) -> None:
    """Write how good the proposals of each score are."""
    from actionspan.evaluation import reliability_report as report
    from actionspan.evaluation.score_quality import score_bins, scored_proposals

    method, subset = arguments.method, arguments.subset
    scored = judge_inputs(arguments, scored_proposals)
    bins = score_bins(scored)
    write_tsv(arguments.out_table, report.COLUMNS, report.table_rows(scored, bins))
    write_text(arguments.out_markdown, report.reliability_markdown(scored, bins, method, subset))
    report.draw_reliability(arguments.out_figure, scored, bins, method)
