"""The numbers of paper 003: table I, in percent, and times of training, as they are printed."""

from collections.abc import Mapping
from itertools import product

DATA_SETS = ("UCF101", "HMDB51")
_COLUMNS = list(product(DATA_SETS, ("rgb", "flow", "two-stream")))
_PRINTED = {
    "aavg1": "81.6 84.1 88.3",  # on UCF101 alone
    "aavg2": "83.7 84.5 89.7",
    "aavg3": "85.6 84.7 91.4 61.4 55.9 67.0",  # section IV of the paper has 85.06 for 85.6
    "aavg4": "85.6 84.7 93.04 61.4 56.0 67.9",
}
PUBLISHED: Mapping[str, Mapping[tuple[str, str], str]] = {
    variant: dict(zip(_COLUMNS, printed.split(), strict=False))
    for variant, printed in _PRINTED.items()
}

LEARNERS = 16
TIMES = (
    ("rgb", 2067, 61, "section IV", False),
    ("rgb", 12 * 60, 61, "section II: around 12 hours", False),
    ("flow", 2 * 24 * 60, 439, "section II: more than two days", True),
)
"""Stream, minutes of one GPU (SGD) and of 16 (AAVG3), where the former; whether it is the least."""


def published_difference(better: str, worse: str, kind: str) -> float | None:
    """Return how far apart the paper prints two variants on UCF101; None where it does not."""
    try:
        high, low = (float(PUBLISHED[method]["UCF101", kind]) for method in (better, worse))
    except KeyError:
        return None
    return high - low
