"""One table of all methods, as JSON, TSV and Markdown."""

import argparse
from pathlib import Path

from actionspan.evaluation.records import (
    read_records,
    summarize,
    summary_markdown,
    summary_rows,
)
from actionspan.files.storage import write_json, write_text, write_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--evaluations", type=Path, nargs="+", required=True, help="in the order of the table"
    )
    parser.add_argument("--out-json", type=Path, required=True, help="{method: {AR@1: …, AUC: …}}")
    parser.add_argument("--out-tsv", type=Path, required=True, help="in percent")
    parser.add_argument("--out-markdown", type=Path, required=True, help="in percent")


def run(arguments: argparse.Namespace) -> None:
    """Write the table of all methods."""
    records = read_records(arguments.evaluations)
    write_json(arguments.out_json, summarize(records))
    write_tsv(arguments.out_tsv, *summary_rows(records))
    write_text(arguments.out_markdown, summary_markdown(records))
