"""The numbers that paper 004 prints on action recognition: tables 1, 2 and 3."""

from collections.abc import Mapping
from typing import NamedTuple


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
