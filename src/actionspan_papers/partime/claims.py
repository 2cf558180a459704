"""Write a verdict on each claim of paper 002: differences of our runs, and their intervals."""

import argparse
from pathlib import Path

from actionspan.settings import add_settings
from actionspan_papers.claims import write_claims
from actionspan_papers.partime.baseline_claims import baseline_findings
from actionspan_papers.partime.learning_claims import (
    classification_findings,
    flow_findings,
    gradient_findings,
)
from actionspan_papers.partime.runs import settings_of
from actionspan_papers.partime.settings import GradientSettings, PartimeSettings
from actionspan_papers.partime.speed_claims import (
    balance_findings,
    delay_finding,
    memory_findings,
    message_findings,
    speed_findings,
    untestable_findings,
)
from actionspan_papers.rows import read_rows
from actionspan_papers.tables import add_outputs

_TABLES = {
    "speedup": ("network", "work", "executor", "measured", "load"),
    "balance": ("network", "stages", "bound_by_operations"),
    "messages": ("network", "bytes_with_skips", "bytes_without_skips"),
    "baselines": ("stages", "schedule", "batch", "speedup", "versions", "activations", "delay"),
    "timeline": ("kind", "stage", "step", "sample", "work"),
    "classification": ("stream", "window", "gradients", "part", "accuracy"),
    "flow": ("stages", "gradients", "part", "loss"),
    "memory": ("network", "mode", "counted"),
    "gradients": ("stream", "setting", "speed", "cosine"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    for name in _TABLES:
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"{name}.tsv")
    parser.add_argument("--cores", type=int, default=2, help="that speed-ups were measured on")
    good = GradientSettings.good_cosine
    parser.add_argument(
        "--good-cosine", type=float, default=good, help=f"of a good gradient (default: {good})"
    )
    add_outputs(parser)
    add_settings(parser, PartimeSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the verdicts as TSV and Markdown."""
    own = settings_of(arguments)
    tables = {
        name: read_rows(getattr(arguments, name), columns) for name, columns in _TABLES.items()
    }
    findings = [
        delay_finding(tables["timeline"]),
        *memory_findings(tables["memory"]),
        *gradient_findings(tables["gradients"], own, arguments.good_cosine),
        *classification_findings(tables["classification"], own),
        *flow_findings(tables["flow"], own),
        *speed_findings(tables["speedup"], own.confidence, arguments.cores),
        *balance_findings(tables["balance"]),
        *message_findings(tables["messages"]),
        *untestable_findings(),
        *baseline_findings(tables["baselines"]),
    ]
    caption = [
        "A difference above 0 speaks for the claim. Intervals "
        f"({100 * own.confidence:g} %, Student's t) are over seeds; of speed-ups over the pairs "
        "of loop and pipeline, or over the networks that are compared. What is counted (bytes, "
        "steps, multiplications) has none. Verdicts are on the sign of the difference, not on its "
        "size.",
        "Published differences are means of the tables' cells, on GPUs and larger networks. "
        "Claims marked as not in the paper are about what the paper leaves out.",
    ]
    write_claims(arguments, findings, "002", caption)
