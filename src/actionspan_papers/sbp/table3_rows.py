"""Top-1 on rendered clips by way to train, over clips and seeds."""

from collections.abc import Mapping

from actionspan.arrays import Float64
from actionspan.running.determinism import deterministic
from actionspan_papers.estimates import Estimate
from actionspan_papers.sbp.clips import training_and_validation
from actionspan_papers.sbp.comparisons import Measured, measure
from actionspan_papers.sbp.published import RECOGNITION, SAMPLING, Recognition, Sampling
from actionspan_papers.sbp.settings import SbpSettings
from actionspan_papers.sbp.trained import Trained
from actionspan_papers.sbp.transformer_settings import TransformerSettings
from actionspan_papers.sbp.transformer_training import (
    CHECKERBOARD,
    DROPOUT,
    END_TO_END,
    FRAMES,
    TRAININGS,
    Training,
    correct,
    saved_by_a_clip,
    train,
)
from actionspan_papers.tables import Row

_PUBLISHED: Mapping[Training, Recognition | Sampling] = {
    END_TO_END: RECOGNITION["Swin-T", "end-to-end"],
    DROPOUT: RECOGNITION["Swin-T", "frame dropout"],
    FRAMES: RECOGNITION["Swin-T", "SBP"],
    CHECKERBOARD: SAMPLING["checkerboard"],
}


def train_all(
    own: SbpSettings, settings: TransformerSettings
) -> tuple[Trained, dict[Training, Measured]]:
    """Train each way with each seed; return the networks and the top-1 of each way."""
    with deterministic(threads=1):
        training, validation = training_and_validation(settings)
        networks = {
            way: [train(way, training, settings, seed) for seed in range(1, own.seeds + 1)]
            for way in TRAININGS
        }
        scored = {
            way: [correct(network, validation).numpy() for network in seeds]
            for way, seeds in networks.items()
        }
    clips = len(validation.labels)
    return Trained(settings, networks), measure(scored, _top1, clips, own.resamples)


def _top1(right: Float64, drawn: Float64) -> float:
    return float(right @ drawn / drawn.sum())


def accuracy_rows(
    found: Mapping[Training, Measured], own: SbpSettings, settings: TransformerSettings
) -> list[Row]:
    """Return a row a way to train: its top-1, and its difference to three others, in points."""
    saved = saved_by_a_clip(TRAININGS, settings)
    rows: list[Row] = []
    for way in TRAININGS:
        printed = _PUBLISHED[way]
        rows.append(
            {
                "way": way,
                "top1": found[way].estimate(own.confidence),
                "less_than_end_to_end": _difference(found, END_TO_END, way, own.confidence),
                "above_frame_dropout": _difference(found, way, DROPOUT, own.confidence),
                "above_frame_wise": _difference(found, way, FRAMES, own.confidence),
                "top1_of_seeds": " ".join(f"{value:.2f}" for value in found[way].seeds),
                "saved_kib_a_clip": f"{saved[way] / 1024:.0f}",
                "saved_share": f"{saved[way] / saved[END_TO_END]:.3f}",
                "published_kinetics": f"{printed.kinetics:g}",
                "published_epic": f"{printed.epic:g}",
            }
        )
    return rows


def _difference(
    found: Mapping[Training, Measured], one: Training, other: Training, confidence: float
) -> Estimate:
    """Return how much the top-1 of one is above another's; a way has no difference to itself."""
    return Estimate() if one == other else found[one].above(found[other], confidence)
