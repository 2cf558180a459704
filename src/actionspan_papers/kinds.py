"""Types of heavy packages, by names that cost no import: the help of a step does not wait."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame as DataFrame
    from torch import Tensor as Tensor
else:
    Axes = DataFrame = Figure = Tensor = Any
