"""The numbers that paper 004 prints on action recognition: tables 1, 2 and 3."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Training = Literal["frozen", "full", "sbp"]


class Trained(NamedTuple):
    """How the spatial model is trained; `keep_ratio` is 1 unless SBP drops backward paths."""

    way: Training
    keep_ratio: float = 1.0


FROZEN, FULL = Trained("frozen"), Trained("full")
HALF, QUARTER, EIGHTH = (Trained("sbp", ratio) for ratio in (0.5, 0.25, 0.125))


class Online(NamedTuple):
    """A cell of table 4: per-frame mAP in percent, and gigabytes of memory a GPU."""

    precision: float
    gigabytes: float


ONLINE: Mapping[tuple[str, Trained], Online] = {
    ("TRN", FROZEN): Online(55.3, 12),
    ("TRN", FULL): Online(56.8, 14.6),
    ("TRN", QUARTER): Online(56.7, 5.6),
    ("TRN", EIGHTH): Online(56.9, 4.3),
    ("LSTR", FROZEN): Online(56.8, 5),
    ("LSTR", FULL): Online(59.2, 32),
    ("LSTR", QUARTER): Online(59.1, 12.2),
    ("LSTR", EIGHTH): Online(59.5, 7),
}
"""Table 4. TRN frozen is trained on one GPU, the others on eight."""
HEADS_LIKE: Mapping[str, str] = {"recurrent": "TRN", "attention": "LSTR"}
"""The paper's method that each of our causal heads is like."""


class Localised(NamedTuple):
    """A row of table 5: mAP in percent at tIoU 0.3 … 0.7, their mean, gigabytes a GPU."""

    precision: tuple[float, float, float, float, float]
    mean: float
    gigabytes: float


LOCALISATION: Mapping[Trained, Localised] = {
    FROZEN: Localised((43.15, 35.84, 28.36, 19.89, 11.96), 27.84, 3),
    FULL: Localised((46.14, 39.86, 32.02, 23.29, 14.56), 31.17, 26),
    HALF: Localised((45.36, 38.72, 31.46, 22.74, 14.01), 30.46, 12),
    QUARTER: Localised((45.12, 37.80, 30.44, 22.81, 14.52), 30.14, 6),
    EIGHTH: Localised((46.40, 38.50, 29.95, 20.37, 11.82), 29.41, 5),
}
"""Table 5, with G-TAD as the temporal model."""

RATES = (1.0, 0.1, 0.01)
"""Spatial learning rate ÷ temporal learning rate, as swept here; figure 6 finds 0.1 best."""
BEST_RATE = 0.1
BEST_SAMPLER = "diverse_feature"
"""Figure 6, section 5.1.3: "achieves overall the best mAP", and the three "are quite similar"."""
MOST_LOST = 1.0
"""Points that SBP loses to end-to-end training at most: "less than 1 %" in the abstract."""


def time_ratio(keep_ratio: float, *, backward: float = 1.0) -> float:
    """Return the time of a step with SBP ÷ that of full training, as section 3.4 reckons it.

    The paper's form, (1 + 2r)/2, takes a backward pass for as dear as a forward pass, and runs the
    kept rows forward twice: (1 + r) forward and r backward passes.

    Args:
        keep_ratio: r.
        backward: Cost of a backward pass in forward passes; 2 is nearer to what is counted.
    """
    return (1 + keep_ratio + backward * keep_ratio) / (1 + backward)


def split_time_ratio(keep_ratio: float, backward: float = 2.0) -> float:
    """Return the same where one forward pass serves both: (1 + 2r)/3, as section 3.2.1 runs it."""
    return (1 + backward * keep_ratio) / (1 + backward)


class Recognition(NamedTuple):
    """A row of table 1: top-1 and top-5 in percent, and gigabytes of memory a GPU."""

    kinetics: float
    kinetics_top5: float
    epic: float
    epic_top5: float
    gigabytes: float


class Cost(NamedTuple):
    """A cell of table 2: gigabytes of memory a GPU and seconds a step."""

    gigabytes: float
    seconds: float


class Sampling(NamedTuple):
    """A row of table 3: top-1 and top-5 in percent."""

    kinetics: float
    kinetics_top5: float
    epic: float
    epic_top5: float


RECOGNITION: Mapping[tuple[str, str], Recognition] = {
    ("Swin-T", "end-to-end"): Recognition(78.8, 93.6, 46.0, 81.5, 15.2),
    ("Swin-T", "frame dropout"): Recognition(76.3, 92.4, 38.9, 79.9, 2.9),
    ("Swin-T", "SBP"): Recognition(78.2, 93.1, 45.2, 81.7, 4.4),
    ("Swin-B", "end-to-end"): Recognition(82.7, 95.5, 49.4, 83.2, 32.5),
    ("Swin-B", "frame dropout"): Recognition(80.8, 94.9, 44.8, 82.5, 6.3),
    ("Swin-B", "SBP"): Recognition(81.9, 95.2, 47.3, 83.6, 8.6),
}
"""Table 1, by network and way to train; the keep ratio is ¼. EPIC-Kitchens-55: verbs."""

COSTS: Mapping[tuple[str, str], Cost] = {
    ("Swin-T", "end-to-end"): Cost(15.2, 0.22),
    ("Swin-T", "SBP"): Cost(4.4, 0.21),
    ("Swin-T", "checkpointing"): Cost(5.8, 0.29),
    ("Swin-T", "SBP + checkpointing"): Cost(3.2, 0.26),
    ("Swin-B", "end-to-end"): Cost(32.5, 0.43),
    ("Swin-B", "SBP"): Cost(8.6, 0.41),
    ("Swin-B", "checkpointing"): Cost(8.0, 0.57),
    ("Swin-B", "SBP + checkpointing"): Cost(4.6, 0.52),
}
"""Table 2: batches of 4 clips, keep ratio ¼, one A100."""

SAMPLING: Mapping[str, Sampling] = {
    "frame-wise": Sampling(78.2, 93.1, 45.2, 81.7),
    "checkerboard": Sampling(78.3, 93.0, 45.4, 81.3),
}
"""Table 3: Swin-T with SBP at ¼."""
