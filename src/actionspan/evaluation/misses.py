"""Which instances one method misses: two tables, a page and a figure."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.evaluation.analysis import add_inputs, read_inputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_inputs(parser)
    parser.add_argument("--out-table", type=Path, required=True, help="counts by bins")
    parser.add_argument("--out-instances", type=Path, required=True, help="a row an instance")
    parser.add_argument("--out-markdown", type=Path, required=True, help="a page to read")
    parser.add_argument("--out-figure", type=Path, required=True, help=".svg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Write which instances are missed."""
    from actionspan.evaluation.misses_report import write_reports
    from actionspan.evaluation.outcomes import instance_outcomes

    videos, proposals = read_inputs(arguments)
    try:
        outcomes = instance_outcomes(videos, proposals)
    except ValueError as error:
        raise InputError(f"{arguments.proposals}, {arguments.annotations}: {error}") from None
    write_reports(
        outcomes,
        method=arguments.method,
        subset=arguments.subset,
        table=arguments.out_table,
        instances=arguments.out_instances,
        markdown=arguments.out_markdown,
        figure=arguments.out_figure,
    )
