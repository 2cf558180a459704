"""Train a small transformer on rendered clips in four ways, as in tables 1 and 3 of paper 004."""

import argparse
from pathlib import Path

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.sbp.settings import SbpSettings, TransformerSettings
from actionspan_papers.tables import add_outputs, table_cells, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser)
    parser.add_argument(
        "--out-networks", type=Path, required=True, help="trained networks to write, .pt"
    )
    add_settings(parser, SbpSettings)
    add_settings(parser, TransformerSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a way to train, and the networks of all seeds."""
    own = from_arguments(SbpSettings, arguments)
    settings = from_arguments(TransformerSettings, arguments)
    from actionspan_papers.sbp.clips import CLASSES
    from actionspan_papers.sbp.table3_rows import accuracy_rows, train_all, write_trained
    from actionspan_papers.sbp.transformer_claims import accuracy_findings

    trained, found = train_all(own, settings)
    write_trained(arguments.out_networks, trained)
    rows = accuracy_rows(found, own, settings)
    columns, every = table_cells(rows)
    written = [dict(zip(columns, cells, strict=True)) for cells in every]
    caption = [
        f"Tables 1 and 3 on a small scale: top-1 in percent on {settings.validation_clips} "
        f"rendered clips of {len(CLASSES)} classes ({', '.join(CLASSES)}), whose scenes, persons "
        f"and cameras are others than those of the {settings.training_clips} training clips. "
        f"{own.seeds} seeds; means and {100 * own.confidence:g} % intervals over clips and seeds; "
        "differences of the same seeds and clips.",
        f"{settings.frames} frames of {settings.side} × {settings.side} pixels in patches of 16 × "
        f"16; {settings.layers} layers of width {settings.width}, SBP (form `masked`) in all but "
        f"the top {settings.top_layers}; keep ratio {settings.keep_ratio:g}, as many nodes in "
        f"every way; {settings.epochs} epochs from random weights. Saved: bytes that a step of "
        "training saves for backward for each clip, counted.",
        "Published: top-1 of Video Swin-T, which starts from ImageNet's weights.",
    ]
    caption += [
        f"Claim: {finding.claim.text} ({finding.claim.source}): **{finding.verdict}**. "
        f"{finding.why}"
        for finding in accuracy_findings(written, settings.margin)
    ]
    titles = {
        "way": "way",
        "top1": "top-1",
        "less_than_end_to_end": "less than end-to-end",
        "above_frame_dropout": "above frame dropout",
        "above_frame_wise": "above frame-wise",
        "saved_kib_a_clip": "saved, KiB a clip",
        "saved_share": "share",
        "published_kinetics": "published, Kinetics-400",
        "published_epic": "published, EPIC verbs",
    }
    write_table(arguments, rows, caption, "l" + 8 * "r", titles)
