"""The meaning of the scores of one method: a table, a page and a figure."""

import argparse

from actionspan.evaluation.files import add_inputs, judge_inputs
from actionspan.evaluation.reliability import (
    COLUMNS,
    reliability_markdown,
    score_bins,
    scored_proposals,
    table_rows,
)
from actionspan.storage.writing import write_text, write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_inputs(parser, figure=".svg or .png", table="quality by bins of scores")


def run(arguments: argparse.Namespace) -> None:
    """Write how good the proposals of each score are."""
    from actionspan.report.figures.methods import draw_reliability

    method, subset = arguments.method, arguments.subset
    scored = judge_inputs(arguments, scored_proposals)
    bins = score_bins(scored)
    write_tsv(arguments.out_table, COLUMNS, table_rows(scored, bins))
    write_text(arguments.out_markdown, reliability_markdown(scored, bins, method, subset))
    draw_reliability(arguments.out_figure, scored, bins, method)
