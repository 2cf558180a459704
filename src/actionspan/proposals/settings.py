"""The knobs of the proposals stage, with units and what is allowed."""

import math
from dataclasses import dataclass
from typing import Literal

from actionspan.settings import option


def _check(allowed: bool, name: str, value: object, what: str) -> None:
    """Raise ValueError that says which value is wrong and what is right."""
    if not allowed:
        raise ValueError(f"{name}: {value!r} is not allowed; use {what}")


def _check_positive(settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        _check(math.isfinite(value) and value > 0, name, value, "a number above 0")


def _check_not_negative(settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        _check(math.isfinite(value) and value >= 0, name, value, "a number of 0 or more")


def _check_count(settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        _check(value >= 1, name, value, "a whole number of 1 or more")


def _check_share(settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        _check(0 <= value <= 1, name, value, "a number in 0…1")


@dataclass(frozen=True, kw_only=True)
class CandidateSettings:
    """How boundary probabilities become candidates (PGM)."""

    peak_ratio: float = option(
        0.5, "a bin is a boundary when its probability exceeds this share of the video's maximum"
    )
    candidates: int = option(1000, "keep this many candidates of each video, best first")
    shortest: int = option(1, "shortest candidate", unit="bins")
    longest: int = option(0, "longest candidate; 0: any (THUMOS14: 300)", unit="bins")
    smoothing: float = option(
        0.0,
        "deviation of a Gaussian over the boundary probabilities beforehand; 0: none",
        unit="bins",
    )

    def __post_init__(self) -> None:
        _check_share(self, "peak_ratio")
        _check_count(self, "candidates", "shortest")
        _check(
            self.longest == 0 or self.longest >= self.shortest,
            "longest",
            self.longest,
            f"0, or at least shortest ({self.shortest})",
        )
        _check_not_negative(self, "smoothing")


@dataclass(frozen=True, kw_only=True)
class EvaluatorSettings:
    """How the evaluator of candidates (PEM) is built and trained."""

    training_candidates: int = option(500, "train on this many best candidates of each video")
    boundary_scores: bool = option(
        False, "also see p_start, p_end and the length as a share of the video"
    )
    hidden: int = option(256, "units of the hidden layer")
    epochs: int = option(20, "passes, each over a new balanced sample")
    batch_size: int = option(256, "candidates in a batch")
    learning_rate: float = option(0.01, "Adam's step size")
    decay_epochs: int = option(10, "multiply the step size by 0.1 after each so many epochs")
    weight_decay: float = option(1e-5, "Adam's weight decay")
    balance: bool = option(
        True, "draw high, middle and low candidates at set ratios; no: all, each counted alike"
    )
    high_threshold: float = option(0.6, "a candidate is high above this tIoU with the truth")
    low_threshold: float = option(0.2, "a candidate is low below this tIoU with the truth")
    middle_ratio: float = option(1.0, "middle candidates sampled for each high one")
    low_ratio: float = option(2.0, "low candidates sampled for each high one")
    keep: Literal["best", "last"] = option(
        "best", "which epoch becomes the evaluator: the best by validation loss, or the last"
    )
    seed: int = option(0, "seed of the first weights and of the samples")

    def __post_init__(self) -> None:
        _check_count(self, "training_candidates", "hidden", "epochs", "batch_size", "decay_epochs")
        _check_positive(self, "learning_rate", "middle_ratio", "low_ratio")
        _check_not_negative(self, "weight_decay")
        _check_share(self, "high_threshold", "low_threshold")
        _check(
            self.low_threshold <= self.high_threshold,
            "low_threshold",
            self.low_threshold,
            f"at most high_threshold ({self.high_threshold})",
        )
        _check(self.keep in ("best", "last"), "keep", self.keep, "best or last")
        _check(self.seed >= 0, "seed", self.seed, "a whole number of 0 or more")


@dataclass(frozen=True, kw_only=True)
class RankingSettings:
    """How a candidate's score is made: (p_start · p_end)^boundary_power · expected tIoU."""

    boundary_power: float = option(
        0.5, "weight of the boundaries in the score; 1 is BSN's, 0 leaves the evaluator alone"
    )

    def __post_init__(self) -> None:
        _check_not_negative(self, "boundary_power")


@dataclass(frozen=True, kw_only=True)
class SuppressionSettings:
    """Soft-NMS; the defaults are ActivityNet's.

    THUMOS14 uses low_threshold 0.5, slope 0.3, epsilon 0.5, keep 1500 and full_width_seconds
    300 / fps.
    """

    low_threshold: float = option(0.65, "tIoU above which a proposal of no width decays others")
    slope: float = option(0.25, "what is added to the threshold for a proposal of full width")
    epsilon: float = option(0.75, "others decay by exp(-tIoU^2 / epsilon)")
    keep: int = option(100, "proposals kept of each video")
    full_width_seconds: float | None = option(
        None, "width that counts as full; none: the video's duration", unit="seconds"
    )

    def __post_init__(self) -> None:
        _check_share(self, "low_threshold")
        _check_not_negative(self, "slope")
        _check_positive(self, "epsilon")
        _check_count(self, "keep")
        if self.full_width_seconds is not None:
            _check_positive(self, "full_width_seconds")


@dataclass(frozen=True, kw_only=True)
class GroupingSettings:
    """Watershed grouping of a signal (TAG): the grid of levels and tolerances."""

    level_step: float = option(0.05, "levels are the multiples of this inside 0…1")
    tolerance_step: float = option(0.05, "tolerances are the multiples of this inside 0…1")

    def __post_init__(self) -> None:
        for name in ("level_step", "tolerance_step"):
            value = getattr(self, name)
            _check(0.001 <= value <= 0.5, name, value, "a number in 0.001…0.5")


@dataclass(frozen=True, kw_only=True)
class ChapterSettings:
    """Which proposals become a video's chapters."""

    chapters: int = option(10, "at most this many chapters a video")
    minimum_score: float = option(0.0, "leave out proposals with a lower score")

    def __post_init__(self) -> None:
        _check_count(self, "chapters")
        _check(math.isfinite(self.minimum_score), "minimum_score", self.minimum_score, "a number")
