"""Write table 5 of paper 004: proposals of the whole pipeline on features of tuned encoders."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.estimates import Estimate
from actionspan_papers.sbp.gradients import add_snippets
from actionspan_papers.sbp.published import LOCALISATION
from actionspan_papers.sbp.settings import DetectionSettings, SbpSettings, TuningSettings
from actionspan_papers.sbp.table4 import above, interval_words, printed
from actionspan_papers.tables import Row, add_outputs, write_table

if TYPE_CHECKING:
    from actionspan_papers.sbp.localisation import Line
    from actionspan_papers.sbp.trainings import Measured, Training

MEASURES = {"auc": "AUC", "map": "mAP"}
TITLES = {
    "way": "training",
    "keep_ratio": "keep ratio",
    "sampler": "sampler",
    **MEASURES,
    **{f"{key}_above_frozen": f"{name}, above frozen" for key, name in MEASURES.items()},
    **{f"{key}_above_full": f"{name}, above full" for key, name in MEASURES.items()},
    "published": "mAP, published",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_snippets(parser)
    parser.add_argument("--videos", type=Path, required=True, help="dataset/videos.tsv")
    add_outputs(parser)
    add_settings(parser, SbpSettings)
    add_settings(parser, TuningSettings)
    add_settings(parser, DetectionSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a training."""
    own = from_arguments(SbpSettings, arguments)
    tuning = from_arguments(TuningSettings, arguments)
    compared = from_arguments(DetectionSettings, arguments)
    from actionspan_papers.sbp.localisation import Line
    from actionspan_papers.sbp.trainings import localisation_trainings

    line = Line(
        snippets=tuple(arguments.snippets),
        videos=arguments.videos,
        annotations=arguments.annotations,
        tuning=tuning,
    )
    found = measured(line, localisation_trainings(compared), own)
    videos = next(iter(found["auc"].values())).videos
    caption = [
        "Table 5 of paper 004: proposals of the whole pipeline, in percent. AUC of AR@AN, and mean "
        "average precision at tIoU 0.3 to 0.7 of proposals as detections of one class. "
        f"EfficientNet-Lite0 on RGB pictures of {tuning.input_size} pixels, tuned with an MTN for "
        f"{tuning.epochs} epochs (frozen: public weights); then a new MTN and evaluator are "
        f"trained on its features. {videos} validation videos.",
        interval_words(own),
        "Published: THUMOS14, ResNet-50 of Kinetics-400 and G-TAD; the order of the trainings can "
        "be compared, the numbers cannot.",
    ]
    align = "lrl" + "r" * (len(TITLES) - 3)
    write_table(arguments, table_rows(found, own), caption, align, TITLES)


def measured(
    line: "Line", trainings: "list[Training]", own: SbpSettings
) -> "dict[str, dict[Training, Measured]]":
    """Tune, run the pipeline and score with every training and seed; return both measures."""
    from actionspan.running.progress import progress
    from actionspan_papers.sbp.localisation import LocalisationScores, score_proposals
    from actionspan_papers.sbp.trainings import FROZEN, measure, tuned

    wanted = [(training, seed) for training in trainings for seed in range(1, own.seeds + 1)]
    scored: dict[Training, list[LocalisationScores]] = {}
    for training, seed in progress(wanted, "pipelines", len(wanted)):
        with TemporaryDirectory() as folder:
            out, weights = Path(folder), None
            if training.way != FROZEN:
                made = tuned(
                    line.snippets, line.annotations, training, line.tuning, seed, out / "tuned"
                )
                weights = made / "rgb" / "model.pt"
            proposals = line.proposals(weights, seed, out / "line")
            scored.setdefault(training, []).append(score_proposals(line.annotations, proposals))
    videos = len(next(iter(scored.values()))[0].instances)
    return {
        "auc": measure(scored, LocalisationScores.auc, videos, own.resamples),
        "map": measure(scored, LocalisationScores.precision, videos, own.resamples),
    }


def table_rows(found: "Mapping[str, Mapping[Training, Measured]]", own: SbpSettings) -> list[Row]:
    """Return the rows, with differences to the frozen and the fully trained encoder."""
    rows: list[Row] = []
    for training in next(iter(found.values())):
        row: dict[str, str | Estimate] = {**training.cells()}
        row["seeds"] = str(own.seeds)
        for key, values in found.items():
            row[key] = values[training].estimate(own.confidence)
            for way in ("frozen", "full"):
                other = next(value for each, value in values.items() if each.way == way)
                row[f"{key}_above_{way}"] = above(values[training], other, own.confidence)
        known = LOCALISATION.get(printed(training)) if training.sampler != "importance" else None
        row["published"] = f"{known.mean:g}" if known else ""
        rows.append(row)
    return rows
