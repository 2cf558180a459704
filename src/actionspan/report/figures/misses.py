"""Which instances one method misses: two tables, a page and a figure."""

import argparse

from actionspan.evaluation.files import add_inputs, judge_inputs
from actionspan.evaluation.misses import (
    INSTANCE_COLUMNS,
    TABLE_COLUMNS,
    break_down,
    instance_outcomes,
    instance_rows,
    misses_markdown,
    table_row,
)
from actionspan.storage.writing import write_text, write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    outputs = {"figure": ".svg or .png", "table": "counts by bins"}
    add_inputs(parser, **outputs, instances="a row an instance")


def run(arguments: argparse.Namespace) -> None:
    """Write which instances are missed."""
    from actionspan.report.figures.methods import draw_misses

    method, subset = arguments.method, arguments.subset
    outcomes = judge_inputs(arguments, instance_outcomes)
    bins = break_down(outcomes)
    write_tsv(arguments.out_table, TABLE_COLUMNS, map(table_row, bins))
    write_tsv(arguments.out_instances, INSTANCE_COLUMNS, instance_rows(outcomes))
    write_text(arguments.out_markdown, misses_markdown(outcomes, bins, method, subset))
    draw_misses(arguments.out_figure, bins, method)
