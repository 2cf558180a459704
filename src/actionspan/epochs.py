"""Epochs after which something changes, as they stand in settings."""

import itertools


def decay_after(epochs: str) -> tuple[int, ...]:
    """Return epochs written by commas as numbers.

    Raises:
        ValueError: It is not a rising list of whole numbers, 1 at least.
    """
    try:
        after = tuple(int(word) for word in epochs.split(",") if word.strip())
    except ValueError:
        after = (0,)
    if any(epoch < 1 for epoch in after) or any(
        one >= two for one, two in itertools.pairwise(after)
    ):
        raise ValueError(f"decay_epochs {epochs!r}: rising whole numbers by commas, e.g. '7,14'")
    return after
