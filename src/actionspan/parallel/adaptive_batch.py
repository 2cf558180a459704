"""A batch that grows when validation accuracy falls (AAVG: paper 003, section III-B)."""

import math


class AdaptiveBatch:
    """The batch size of each learner: lines 13 to 21 of algorithm 1.

    Args:
        size: Initial batch size; the attribute of this name is the current one.
        margin: b1 of the paper: the batch grows at accuracies below `margin` times the best.
        growth: b2 of the paper: factor by which the batch grows; 1 keeps it constant.
        cap: Largest batch size.

    Attributes:
        best: The best accuracy so far.

    Raises:
        ValueError: A value is out of range.
    """

    def __init__(self, size: int, margin: float = 1.0, growth: float = 2.0, cap: int = 576) -> None:
        if not 1 <= size <= cap:
            raise ValueError(f"batch size {size}: from 1 to the cap, {cap}")
        if not 0 <= margin < math.inf:
            raise ValueError(f"margin {margin}: a number, at least 0")
        if not 1 <= growth < math.inf:
            raise ValueError(f"growth {growth}: a number, at least 1")
        self.size, self.margin, self.growth, self.cap = size, margin, growth, cap
        self.best = 0.0

    def update(self, accuracy: float) -> None:
        """Take a validation accuracy into account; with margin 1, a tie does not grow the batch."""
        if math.isnan(accuracy):
            raise ValueError("the validation accuracy is not a number")
        if accuracy < self.best * self.margin:
            self.size = min(self.cap, math.ceil(self.size * self.growth))
        self.best = max(self.best, accuracy)

    def state(self) -> dict[str, float]:
        """Return what changes, for a checkpoint."""
        return {"size": self.size, "best": self.best}

    def restore(self, state: dict[str, float]) -> None:
        """Go back to a `state`."""
        self.size, self.best = int(state["size"]), float(state["best"])
