"""Write a verdict on each claim of paper 004: differences of our runs, and their intervals."""

import argparse
from pathlib import Path

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.claims import write_claims
from actionspan_papers.rows import read_rows
from actionspan_papers.sbp.detection_claims import (
    localisation_findings,
    online_findings,
    rate_findings,
)
from actionspan_papers.sbp.gradient_claims import gradient_findings
from actionspan_papers.sbp.memory_claims import memory_findings, time_findings
from actionspan_papers.sbp.settings import SbpSettings
from actionspan_papers.sbp.transformer_claims import (
    accuracy_findings,
    depth_findings,
    likeness_findings,
)
from actionspan_papers.tables import add_outputs

_TABLES = {
    "table1": ("network", "way", "saved_share"),
    "table2": ("attention", "way", "saved_share"),
    "table3": ("way", "less_than_end_to_end", "above_frame_wise", "top1_of_seeds"),
    "table4": ("head", "way", "keep_ratio", "above_frozen", "above_full"),
    "table5": ("way", "keep_ratio", "sampler", "map_above_full", "auc_above_full"),
    "figure1": ("seed", "kind", "layer", "cosine"),
    "figure4": ("way", "start", "seed", "layer", "cka"),
    "figure6": ("sampler", "encoder_share", "above_uniform", "above_first"),
    "gradients": ("part", "video", "sampler", "keep_ratio", "cosine", "block", "quantity"),
    "measurements": ("way", "keep_ratio", "saved_part", "seconds_part"),
}
_MARGIN = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    for name in _TABLES:
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"{name}.tsv")
    parser.add_argument(
        "--margin",
        type=float,
        default=_MARGIN,
        help=f"points of top-1 within which two ways are alike (default: {_MARGIN:g})",
    )
    add_outputs(parser)
    add_settings(parser, SbpSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the verdicts as TSV and Markdown."""
    own = from_arguments(SbpSettings, arguments)
    tables = {
        name: read_rows(getattr(arguments, name), columns) for name, columns in _TABLES.items()
    }
    findings = [
        *accuracy_findings(tables["table3"], arguments.margin),
        *online_findings(tables["table4"]),
        *localisation_findings(tables["table5"]),
        *rate_findings(tables["figure6"]),
        *memory_findings(tables["measurements"], tables["table1"], tables["table2"]),
        *time_findings(tables["measurements"]),
        *depth_findings(tables["figure1"], own.confidence),
        *likeness_findings(tables["figure4"], own.confidence),
        *gradient_findings(tables["gradients"], own.confidence),
    ]
    caption = [
        "A difference above 0 speaks for the claim. Intervals "
        f"({100 * own.confidence:g} %) of accuracy and precision are over videos or clips "
        "(bootstrap) and seeds, of gradients over videos, of layers over seeds (Student's t). What "
        "is counted (bytes) has none, nor has the median of measured seconds. Verdicts are on the "
        "sign of the difference. Where two things are claimed to be alike or nearly as good, the "
        "margin is in the claim, and the difference is what is left of it.",
        "Published differences are of other networks and data. Claims marked as not in the paper "
        "are ours.",
    ]
    write_claims(arguments, findings, "004", caption)
