"""Short names of types; heavy packages are not imported for them: a step's help does not wait."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame as DataFrame
    from torch import Tensor as Tensor
else:
    Axes = DataFrame = Figure = Tensor = Any

Flags = argparse.Namespace
"""The flags of a step, parsed."""
Config = Mapping[str, Any]
"""The checked configuration."""
