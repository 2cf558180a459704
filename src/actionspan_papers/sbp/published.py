"""The numbers that paper 004 prints: tables 1 to 5 and figure 6."""

import math
from collections.abc import Mapping
from typing import NamedTuple


class Trained(NamedTuple):
    """How the spatial model is trained; `keep_ratio` is 1 unless SBP drops backward paths."""

    way: str
    """`frozen`, `full` or `sbp`."""
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


class _Localised(NamedTuple):
    """A row of table 5: mAP in percent at tIoU 0.3 … 0.7, their mean, gigabytes a GPU."""

    precision: tuple[float, float, float, float, float]
    mean: float
    gigabytes: float


LOCALISATION: Mapping[Trained, _Localised] = {
    FROZEN: _Localised((43.15, 35.84, 28.36, 19.89, 11.96), 27.84, 3),
    FULL: _Localised((46.14, 39.86, 32.02, 23.29, 14.56), 31.17, 26),
    HALF: _Localised((45.36, 38.72, 31.46, 22.74, 14.01), 30.46, 12),
    QUARTER: _Localised((45.12, 37.80, 30.44, 22.81, 14.52), 30.14, 6),
    EIGHTH: _Localised((46.40, 38.50, 29.95, 20.37, 11.82), 29.41, 5),
}
"""Table 5, with G-TAD as the temporal model."""

BEST_RATE = 0.1
"""Spatial learning rate ÷ temporal learning rate that figure 6 finds best."""
BEST_SAMPLER = "diverse_feature"
"""Figure 6, section 5.1.3: "achieves overall the best mAP", and the three "are quite similar"."""
MOST_LOST = 1.0
"""Points that SBP loses to end-to-end training at most: "less than 1 %" in the abstract."""


class Recognition(NamedTuple):
    """A row of table 1 or 3: top-1 and top-5 in percent, and gigabytes of memory a GPU."""

    kinetics: float
    kinetics_top5: float
    epic: float
    epic_top5: float
    gigabytes: float = math.nan


class Cost(NamedTuple):
    """A cell of table 2: gigabytes of memory a GPU and seconds a step."""

    gigabytes: float
    seconds: float


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

END_TO_END, DROPOUT = "end-to-end", "frame dropout"
FRAMES, CHECKERBOARD = "SBP, frame-wise", "SBP, checkerboard"
ACCURACY: Mapping[str, Recognition] = {
    END_TO_END: RECOGNITION["Swin-T", "end-to-end"],
    DROPOUT: RECOGNITION["Swin-T", "frame dropout"],
    FRAMES: RECOGNITION["Swin-T", "SBP"],
    CHECKERBOARD: Recognition(78.3, 93.0, 45.4, 81.3),
}
"""Table 3: Swin-T with SBP at ¼; its frame-wise row is SBP's in table 1, like the others."""


COMPARED = (END_TO_END, FRAMES, DROPOUT)
"""The ways compared with end-to-end training; itself is the ceiling."""
