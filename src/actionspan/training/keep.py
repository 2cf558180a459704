"""Which weights a training ends with."""

from typing import Literal

Keep = Literal["best", "average", "last"]
"""Those of the epoch with the highest score, the mean of the last few epochs', or the last's."""
