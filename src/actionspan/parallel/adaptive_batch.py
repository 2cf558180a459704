"""A batch that grows when validation no longer improves (AAVG: paper 003, section III-B)."""

import math


class AdaptiveBatch:
    """The batch size of each learner: lines 13 to 21 of algorithm 1.

    Args:
        size: At the start.
        margin: b1 of the paper: an accuracy below `margin` times the best before lets it grow.
        growth: b2 of the paper: the factor by which it grows; 1 keeps it constant.
        cap: It grows no further.

    Attributes:
        size: The batch size now.
        best: The best accuracy so far.

    Raises:
        ValueError: A value is out of range.
    """

    def __init__(self, size: int, margin: float = 1.0, growth: float = 2.0, cap: int = 576) -> None:
        if not 1 <= size <= cap:
            raise ValueError(f"batch size {size}: from 1 to the cap, {cap}")
        if not 0 <= margin < math.inf:
            raise ValueError(f"margin {margin}: a number, 0 at least")
        if not 1 <= growth < math.inf:
            raise ValueError(f"growth {growth}: a number, 1 at least")
        self.size, self.margin, self.growth, self.cap = size, margin, growth, cap
        self.best = 0.0

    def update(self, accuracy: float) -> None:
        """Take note of a validation accuracy; with margin 1, one as good as the best is no reason.

        Raises:
            ValueError: It is no number.
        """
        if math.isnan(accuracy):
            raise ValueError("the validation accuracy is no number")
        if accuracy < self.best * self.margin:
            self.size = min(self.cap, math.ceil(self.size * self.growth))
        self.best = max(self.best, accuracy)

    def state(self) -> dict[str, float]:
        """Return what changes, as plain values, for a checkpoint."""
        return {"size": self.size, "best": self.best}

    def restore(self, state: dict[str, float]) -> None:
        """Go back to what `state` returned."""
        self.size, self.best = int(state["size"]), float(state["best"])
