"""Train a small transformer on rendered clips in four ways, as in tables 1 and 3 of paper 004."""

from collections.abc import Mapping
from pathlib import Path

from actionspan_papers.estimates import Resampled
from actionspan_papers.experiments import Experiment, Row, Table, titled
from actionspan_papers.kinds import DataFrame, Flags
from actionspan_papers.sbp.claims import accuracy_findings
from actionspan_papers.sbp.published import ACCURACY, DROPOUT, END_TO_END, FRAMES
from actionspan_papers.sbp.settings import SbpSettings, TransformerSettings

_NETWORKS = {"type": Path, "required": True, "help": "trained networks to write, .pt"}
_TITLES = titled(
    "way; top1: top-1; less_than_end_to_end: less than end-to-end; above_frame_dropout: above "
    "frame dropout; above_frame_wise: above frame-wise; saved_kib_a_clip: saved, KiB a clip; "
    "saved_share: share; published_kinetics: published, Kinetics-400; published_epic: published, "
    "EPIC verbs"
)
_Found = Mapping[str, Resampled]


def _read(arguments: Flags, own: SbpSettings, settings: TransformerSettings) -> _Found:
    """Train and write the networks of all seeds; return the top-1 of each way."""
    from actionspan_papers.sbp.clips import train_all, write_trained

    trained, found = train_all(own, settings)
    write_trained(arguments.out_networks, trained)
    return found


def _rows(found: _Found, own: SbpSettings, settings: TransformerSettings) -> list[Row]:
    """Return a row a way to train: its top-1, and its difference to three others, in points."""
    from actionspan_papers.sbp.clips import saved_by_a_clip

    saved = {way: saved_by_a_clip(way, settings) for way in found}
    level = own.confidence
    return [
        {
            "way": way,
            "top1": measured.estimate(level).percentage(),
            "less_than_end_to_end": found[END_TO_END].above(measured, level),
            "above_frame_dropout": measured.above(found[DROPOUT], level),
            "above_frame_wise": measured.above(found[FRAMES], level),
            "top1_of_seeds": " ".join(f"{value:.2f}" for value in measured.seeds),
            "saved_kib_a_clip": saved[way] / 1024,
            "saved_share": saved[way] / saved[END_TO_END],
            "published_kinetics": ACCURACY[way].kinetics,
            "published_epic": ACCURACY[way].epic,
        }
        for way, measured in found.items()
    ]


def _table(rows: DataFrame, _: _Found, own: SbpSettings, settings: TransformerSettings) -> Table:
    from actionspan_papers.sbp.clips import CLASSES

    caption = [
        f"Tables 1 and 3 on a small scale: top-1 in percent on {settings.validation_clips} "
        f"rendered clips of {len(CLASSES)} classes ({', '.join(CLASSES)}), with scenes, persons "
        f"and cameras other than in the {settings.training_clips} training clips. "
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
        for finding in accuracy_findings(rows, settings.margin)
    ]
    return Table(caption=caption, titles=_TITLES)


EXPERIMENT = Experiment(
    inputs={"out-networks": _NETWORKS},
    read=_read,
    rows=_rows,
    table=_table,
    settings=(SbpSettings, TransformerSettings),
    repeatable=True,
    forms={"saved_kib_a_clip": ".0f", "saved_share": ".3f"},
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
