"""Which names of a set are held out to validate; standard library only."""

import hashlib
from collections.abc import Sequence


def held_out_names(names: Sequence[str], fraction: float) -> list[str]:
    """Return which of different names are held out, the same whatever their order.

    They are the first by a hash: `fraction` of all, rounded, but one at least of two or more where
    `fraction` is above 0, and never all.
    """
    if fraction == 0 or len(names) < 2:
        return []
    count = min(max(1, round(fraction * len(names))), len(names) - 1)
    return sorted(names, key=lambda name: (stable_hash("held out", name), name))[:count]


def stable_hash(*parts: str) -> bytes:
    """Return bytes that follow from some text, the same on every machine."""
    return hashlib.sha256(" ".join(parts).encode("utf-8", "surrogateescape")).digest()
