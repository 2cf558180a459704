"""The settings of the proposals stage."""

from dataclasses import dataclass

from actionspan.settings import Checked, option
from actionspan.training.settings import Keep

MOST_EVENTS = 10**4  # that a video lists


@dataclass(frozen=True, kw_only=True)
class CandidateSettings(Checked):
    """How boundary probabilities become candidates (PGM)."""

    peak_ratio: float = option(
        0.5, "a boundary is a peak, or above this share of the highest probability", least=0, most=1
    )
    candidates: int = option(1000, "candidates kept of each video, best first", least=1, most=10**6)
    shortest: int = option(1, "shortest candidate", unit="steps", least=1, most=10**6)
    longest: int = option(
        0, "longest candidate; 0: any (THUMOS14: 300)", unit="steps", least=0, most=10**6
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.longest < self.shortest:
            raise ValueError(f"longest {self.longest}: 0, or at least shortest, {self.shortest}")


@dataclass(frozen=True, kw_only=True)
class EvaluatorSettings(Checked):
    """How the evaluator of candidates (PEM) is built and trained."""

    training_candidates: int = option(
        500, "train on this many of the best candidates of each video", least=1
    )
    boundary_scores: bool = option(
        False, "the evaluator also sees p_start, p_end and the length as a share of the video"
    )
    hidden: int = option(256, "units of the hidden layer", least=1, most=65_536)
    epochs: int = option(20, "passes, each over a new balanced sample", least=1)
    batch_size: int = option(256, "candidates in a step", least=1)
    learning_rate: float = option(0.01, "Adam's step size", above=0)
    decay_epochs: int = option(
        10, "epochs between falls of the learning rate, each to a tenth", least=1
    )
    weight_decay: float = option(1e-5, "Adam's L2 penalty", least=0)
    high_threshold: float = option(
        0.6, "a candidate is high above this tIoU with the truth", least=0, most=1
    )
    low_threshold: float = option(0.2, "and low below this tIoU", least=0, most=1)
    middle_ratio: float = option(1.0, "middle candidates drawn for each high one", above=0)
    low_ratio: float = option(2.0, "low candidates drawn for each high one", above=0)
    keep: Keep = option(
        "last",
        "last epoch, average of the weights of the last epochs, or best epoch by validation loss "
        "(docs/protocol.md)",
    )
    average_epochs: int = option(10, "how many epochs are in the average, one weight each", least=1)
    seed: int = option(0, "seed of the first weights and of the samples", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low_threshold > self.high_threshold:
            raise ValueError(
                f"low_threshold {self.low_threshold}: at most high_threshold, {self.high_threshold}"
            )


@dataclass(frozen=True, kw_only=True)
class RankingSettings(Checked):
    """How a candidate's score is made."""

    boundary_power: float = option(
        0.5, "score = (p_start · p_end)^this · expected tIoU (BSN: 1; 0: tIoU alone)", least=0
    )


@dataclass(frozen=True, kw_only=True)
class SuppressionSettings(Checked):
    """Soft-NMS; the defaults are ActivityNet's.

    THUMOS14 uses low_threshold 0.5, slope 0.3, epsilon 0.5, keep 1500 and full_width_seconds
    300 / fps.
    """

    low_threshold: float = option(
        0.65, "tIoU above which a proposal of no width decays others", least=0, most=1
    )
    slope: float = option(0.25, "added to it for a proposal of full width", least=0, most=1000)
    epsilon: float = option(0.75, "others decay by exp(-tIoU² / epsilon)", least=1e-6, most=1e6)
    keep: int = option(100, "proposals kept of each video", least=1, most=10**5)
    full_width_seconds: float | None = option(
        None, "width that counts as full; without one, the video's duration", least=1e-6, most=1e9
    )


@dataclass(frozen=True, kw_only=True)
class LatticeSettings(Checked):
    """The segments among which proposals are chosen (models span and stream)."""

    ratio: float = option(
        1.15, "each length of segments times this is the next", least=1.02, most=2
    )
    stride: float = option(
        0.125, "distance of two segments of a length, as a share of it", least=0.02, most=1
    )
    pairs: int = option(
        500,
        "segments from a peak of the start curve to one of the end curve, added to the cells",
        least=0,
        most=10**5,
    )


@dataclass(frozen=True, kw_only=True)
class DensitySettings(Checked):
    """How the density of instances over the lattice is learned (models span and stream)."""

    training_cells: int = option(
        600,
        "cells of a video to learn from, of each of near, middle and far from the truth",
        least=1,
    )
    hidden: int = option(64, "units of both hidden layers", least=1, most=65_536)
    dropout: float = option(0.2, "probability that a hidden value is dropped", least=0, below=1)
    epochs: int = option(20, "passes, each over a new balanced sample", least=1)
    batch_size: int = option(512, "cells in a step", least=1)
    learning_rate: float = option(0.002, "AdamW's first step size; it falls to 0", above=0)
    weight_decay: float = option(0.001, "AdamW's weight decay", least=0)
    seed: int = option(0, "seed of the first weights and of the samples", least=0)
    on_cuts: float | None = option(
        None,
        "share of instances that begin and end where a video is cut, in videos that are; null: as "
        "in the training videos",
        least=0,
        most=1,
    )
    per_bout: float | None = option(
        None,
        "instances expected at each bout of motion; null: the share of bouts that are right in the "
        "training videos, 0 where proposals are not better for it",
        least=0,
        most=1,
    )


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(Checked):
    """How proposals are chosen by the recall that they are expected to add (span, stream)."""

    proposals: int = option(100, "proposals chosen of each video", least=1, most=10**5)
    counted: int = option(
        1500, "cells of highest density where instances are expected", least=1, most=10**4
    )
    considered: int = option(
        1000, "cells worth the most that proposals are chosen from", least=1, most=10**4
    )


@dataclass(frozen=True, kw_only=True)
class EventSettings(Checked):
    """Which distinct events a reader is shown (models span and stream)."""

    events: int | None = option(
        None,
        "at most this many events a video; null: 10, or twice the number expected if that is more, "
        "and for the included model the number expected",
        least=1,
        most=MOST_EVENTS,
    )
    overlap: float = option(
        0.5, "most that two events share, of the shorter of both", least=0, below=1
    )
    bar: float | None = option(
        None,
        "least chance to be right of an event that is shown; null: the one of best F1 score in "
        "cross-fitting on the training videos",
        least=0,
        most=1,
    )


@dataclass(frozen=True, kw_only=True)
class OnlineSettings(Checked):
    """How proposals are made while the video plays (model stream)."""

    ahead: float = option(
        1.0,
        "how far behind a segment's end its density sees the curves",
        unit="snippets",
        least=0,
        most=1000,
    )
    least: float = option(
        0.003, "instances times recall that a proposal is expected to add at least", above=0
    )


@dataclass(frozen=True, kw_only=True)
class GroupingSettings(Checked):
    """Watershed grouping of a signal (TAG): the grid of levels and tolerances."""

    level_step: float = option(
        0.05, "levels are the multiples of this inside 0…1", least=0.001, most=0.5
    )
    tolerance_step: float = option(
        0.05, "tolerances are the multiples of this inside 0…1", least=0.001, most=0.5
    )


@dataclass(frozen=True, kw_only=True)
class ChapterSettings(Checked):
    """Which proposals become a video's chapters.

    `share` was chosen on the training videos of the demo set, of which no score is reported: with
    it chapters of MTN reach an F1 score of 0.94 at tIoU 0.5 there, without one 0.65. `shortest` is
    about the time that reading a chapter's name takes.
    """

    chapters: int = option(10, "at most this many chapters a video", least=1)
    share: float = option(
        0.5, "leave out proposals with a score below this share of the best", least=0, most=1
    )
    shortest: float = option(0.5, "leave out shorter proposals", unit="seconds", least=0)
    minimum_score: float = option(0.0, "leave out proposals with a lower score")


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(Checked):
    """How the classifier of segments, which labels proposals, is trained."""

    penalties: tuple[float, ...] = option(
        (0.003, 0.03, 0.3),
        "strengths of the L2 penalty, of which cross-validation over training videos takes one",
        above=0,
        fewest=1,
        rising=True,
    )
    folds: int = option(5, "folds of it; with one a video, each is left out in turn", least=2)
    shift: float = option(
        0.2,
        "each instance is also learned with its ends moved by this share of its length",
        least=0,
        below=0.5,
    )
    most_instances: int = option(
        16_000, "most instances to learn from; beyond it, every k-th video is used", least=1
    )


@dataclass(frozen=True, kw_only=True)
class DetectionSettings(Checked):
    """How labelled proposals become detections."""

    classes: int = option(2, "detections of each proposal: its best classes", least=1)
