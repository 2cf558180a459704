"""Write table 4 of paper 004: online detection with encoders that are tuned in several ways."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.estimates import Estimate
from actionspan_papers.sbp.gradients import add_snippets
from actionspan_papers.sbp.published import HEADS_LIKE, ONLINE, Trained
from actionspan_papers.sbp.settings import DetectionSettings, SbpSettings, TuningSettings
from actionspan_papers.tables import Row, add_outputs, write_table

if TYPE_CHECKING:
    from actionspan_papers.sbp.online_rows import Run
    from actionspan_papers.sbp.trainings import Measured, Training

TITLES = {
    "head": "head",
    "way": "training",
    "keep_ratio": "keep ratio",
    "precision": "per-frame mAP",
    "above_frozen": "above frozen",
    "above_full": "above full",
    "published": "published",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_snippets(parser)
    add_outputs(parser)
    add_settings(parser, SbpSettings)
    add_settings(parser, TuningSettings)
    add_settings(parser, DetectionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a head and training."""
    own = from_arguments(SbpSettings, arguments)
    tuning = from_arguments(TuningSettings, arguments)
    compared = from_arguments(DetectionSettings, arguments)
    from actionspan.finetune.settings import HEADS
    from actionspan_papers.sbp.online_rows import measure_online
    from actionspan_papers.sbp.trainings import online_trainings

    runs = [(head, training) for head in HEADS for training in online_trainings(compared)]
    found = measure_online(arguments.snippets, arguments.annotations, runs, own, tuning)
    videos = next(iter(found.values())).videos
    caption = [
        "Table 4 of paper 004: per-frame mean average precision of online detection, in percent. "
        "Heads: recurrent (like TRN) and causal attention (like LSTR), over EfficientNet-Lite0 on "
        f"pictures of {tuning.input_size} pixels, tuned for {tuning.epochs} epochs, the encoder's "
        f"step size {tuning.encoder_share:g} of the head's. {videos} validation videos.",
        interval_words(own),
        "Published: THUMOS14, ResNet-50 of Kinetics-400, TRN and LSTR; the order of the trainings "
        "can be compared, the numbers cannot.",
    ]
    write_table(arguments, table_rows(found, own), caption, "llrrrrr", TITLES)


def interval_words(own: SbpSettings) -> str:
    """Return what the cells are."""
    return (
        f"{own.seeds} seeds, which share first weights, order of videos and crops between "
        f"trainings; in brackets the {100 * own.confidence:g} % interval over videos (bootstrap, "
        f"{own.resamples:,} resamples) and seeds. Differences are of the same videos and seeds."
    )


def table_rows(found: "Mapping[Run, Measured]", own: SbpSettings) -> list[Row]:
    """Return the rows, with differences to the frozen and the fully trained encoder."""
    rows: list[Row] = []
    for (head, training), measured in found.items():
        ends = {way: found[key] for way in ("frozen", "full") for key in _of_way(found, head, way)}
        published = ONLINE.get((HEADS_LIKE[head], printed(training)))
        row: dict[str, str | Estimate] = {"head": head, **training.cells()}
        row |= {"seeds": str(len(measured.seeds)), "precision": measured.estimate(own.confidence)}
        for way, other in ends.items():
            row[f"above_{way}"] = above(measured, other, own.confidence)
        row["published"] = f"{published.precision:g}" if published else ""
        rows.append(row)
    return rows


def above(measured: "Measured", other: "Measured", confidence: float) -> Estimate:
    """Return a difference, which a training does not have to itself."""
    same = measured is other
    return Estimate(form="+.2f") if same else measured.above(other, confidence)


def printed(training: "Training") -> Trained:
    """Return how the paper names a training."""
    return Trained(training.way, training.keep_ratio)  # type: ignore[arg-type]


def _of_way(found: "Mapping[Run, Measured]", head: str, way: str) -> "list[Run]":
    return [key for key in found if (key[0], key[1].way) == (head, way)]
