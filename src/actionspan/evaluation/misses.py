"""Which instances one method misses: two tables, a page and a figure."""

import argparse
from pathlib import Path

from actionspan.evaluation.analysis import add_inputs, judge_inputs
from actionspan.files.storage import write_text, write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_inputs(parser)
    parser.add_argument("--out-table", type=Path, required=True, help="counts by bins")
    parser.add_argument("--out-instances", type=Path, required=True, help="a row an instance")


def run(arguments: argparse.Namespace) -> None:
    """Write which instances are missed."""
    from actionspan.evaluation import misses_report as report
    from actionspan.evaluation.outcomes import break_down, instance_outcomes

    method, subset = arguments.method, arguments.subset
    outcomes = judge_inputs(arguments, instance_outcomes)
    bins = break_down(outcomes)
    write_tsv(arguments.out_table, report.TABLE_COLUMNS, map(report.table_row, bins))
    write_tsv(arguments.out_instances, report.INSTANCE_COLUMNS, report.instance_rows(outcomes))
    write_text(arguments.out_markdown, report.misses_markdown(outcomes, bins, method, subset))
    report.draw_misses(arguments.out_figure, bins, method)
