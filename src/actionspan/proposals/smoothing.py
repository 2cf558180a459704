"""Boundary probabilities smoothed over time, before boundaries are picked and scored."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOUNDARIES = (0, 2)  # columns of start and end
CUT = 4.0  # deviations at which the Gaussian is cut off


def smooth_boundaries(probabilities: ArrayLike, sigma: float) -> NDArray[Any]:
    """Smooth start and end probabilities by a Gaussian over the bins; actionness stays.

    The Gaussian is cut off at 4 sigma, and at the ends of the video, where the weights that are
    left are made to add up to 1 again. So every value is a weighted mean of its neighbours: it
    stays in 0…1, a constant stays as it is, and beyond an end nothing is made up. The numbers of a
    video do not depend on what else is in the array.

    The means are rounded to float32, the type in which probabilities are kept: float32 values and
    the same values as float64 give the same peaks, and the product of two means is exact.

    Args:
        probabilities: (..., T, 3) start, actionness and end probabilities, in 0…1.
        sigma: Deviation of the Gaussian in bins; 0: nothing is smoothed.

    Returns:
        (..., T, 3) of the same type.

    Raises:
        ValueError: The shape is another, a value is not in 0…1, or sigma is not a number of 0 or
            more.
    """
    values = np.asarray(probabilities)
    if not 0 <= sigma < math.inf:
        raise ValueError(f"sigma: {sigma} is not a number of 0 or more")
    if sigma == 0:
        return values
    if values.ndim < 2 or values.shape[-1] != 3:
        raise ValueError(f"probabilities: shape {values.shape} is not (..., T, 3)")
    if not ((values >= 0) & (values <= 1)).all():  # NaN compares false
        raise ValueError("probabilities: not all values are numbers in 0…1")
    bins = values.shape[-2]
    boundaries = values[..., BOUNDARIES].astype(np.float64)  # (..., T, 2)
    summed = np.zeros_like(boundaries)
    weights = np.zeros((bins, 1))
    reach = min(math.ceil(CUT * sigma), bins - 1)
    for offset in range(-reach, reach + 1):
        weight = math.exp(-((offset / sigma) ** 2) / 2)
        here = slice(max(-offset, 0), bins - max(offset, 0))
        there = slice(max(offset, 0), bins - max(-offset, 0))
        summed[..., here, :] += weight * boundaries[..., there, :]
        weights[here] += weight
    smoothed = values.astype(values.dtype if values.dtype.kind == "f" else np.float64)
    means = np.minimum(summed / weights, 1.0)  # not above by rounding
    smoothed[..., BOUNDARIES] = means.astype(np.float32)
    return smoothed
