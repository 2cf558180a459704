"""What the scores of one method mean: a table, a page and a figure."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.evaluation.analysis import add_inputs, read_inputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_inputs(parser)
    parser.add_argument("--out-table", type=Path, required=True, help="quality by bins of scores")
    parser.add_argument("--out-markdown", type=Path, required=True, help="a page to read")
    parser.add_argument("--out-figure", type=Path, required=True, help=".svg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Write how good the proposals of each score are."""
    from actionspan.evaluation.reliability_report import write_reports
    from actionspan.evaluation.score_quality import scored_proposals

    videos, proposals = read_inputs(arguments)
    try:
        scored = scored_proposals(videos, proposals)
    except ValueError as error:
        raise InputError(f"{arguments.proposals}, {arguments.annotations}: {error}") from None
    write_reports(
        scored,
        method=arguments.method,
        subset=arguments.subset,
        table=arguments.out_table,
        markdown=arguments.out_markdown,
        figure=arguments.out_figure,
    )
