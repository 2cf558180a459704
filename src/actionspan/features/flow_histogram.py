"""A descriptor of motion made from flow planes: where, how much, in which direction."""

import cv2
import numpy as np

from actionspan.arrays import Float32, Float64, UInt8
from actionspan.networks.names import NO_MOTION
from actionspan.video.optical_flow import CODES

GRID = 4  # cells a side
CELL = 12  # points a side of a cell
ORIENTATIONS = 8
FEATURES = (GRID * GRID + 1) * (ORIENTATIONS + 3) + 4


def flow_histogram(planes: UInt8, bound: float) -> Float32:
    """Describe the motion of a snippet.

    The planes are shrunk to 4×4 cells of 12×12 points, the median vector of each pair (the
    camera's motion) is subtracted, and vectors become percent of the frame's height. Each cell, and
    the full frame, gives a histogram of 8 orientations weighted by magnitude, the mean magnitude
    and the mean vector, over all L pairs. The frame also gives the camera's motion, the 95th
    percentile of magnitude and the deviation of the pairs' mean magnitudes. Signed square roots
    compress the range.

    Args:
        planes: (2L, h, w) quantised flow, x and y interleaved.
        bound: Pixels at level 255.

    Returns:
        (191,): 11 values of each of 16 cells, 11 of the frame, 4 more of the frame.
    """
    # vectors, without the camera's
    side = GRID * CELL
    levels = [plane.astype(np.float32) for plane in planes]
    shrunk = np.stack([cv2.resize(x, (side, side), interpolation=cv2.INTER_AREA) for x in levels])
    percent = 100 * bound / (CODES * planes.shape[1])  # of the height, a code
    vectors = ((shrunk - NO_MOTION) * percent).reshape(-1, 2, side, side)  # (L, 2, 48, 48)
    camera = np.median(vectors, axis=(2, 3))  # (L, 2)
    x, y = np.moveaxis(vectors - camera[:, :, None, None], 1, 0)  # (L, 48, 48) each
    magnitude = np.hypot(x, y)
    # cells (16, 11) and frame
    means = map(_cell_means, (magnitude, x, y))
    cells = np.column_stack([_orientation_histogram(x, y, magnitude), *means])
    spread = magnitude.mean(axis=(1, 2)).std()
    frame = [*camera.mean(axis=0), np.percentile(magnitude, 95), spread]
    values = np.concatenate([cells.ravel(), cells.mean(axis=0), frame])
    return np.asarray(np.sign(values) * np.sqrt(np.abs(values)), np.float32)


def _cell_means(points: Float32) -> Float64:
    """Average (L, 48, 48) points over the pairs and over each cell, (16,)."""
    blocks = points.reshape(-1, GRID, CELL, GRID, CELL)
    return np.asarray(blocks.mean(axis=(0, 2, 4), dtype=np.float64).ravel())


def _orientation_histogram(x: Float32, y: Float32, magnitude: Float32) -> Float64:
    """Share each point's magnitude between its two nearest orientations, (16 cells, 8)."""
    turns = np.arctan2(y, x) * (ORIENTATIONS / (2 * np.pi)) % ORIENTATIONS
    lower = np.floor(turns).astype(np.int64)
    upper_weight = (turns - lower) * magnitude
    rows = np.arange(GRID * CELL) // CELL
    cell = (rows[:, None] * GRID + rows[None, :]) * ORIENTATIONS  # (48, 48)
    histogram = np.zeros(GRID * GRID * ORIENTATIONS)
    for index, weight in ((lower, magnitude - upper_weight), (lower + 1, upper_weight)):
        histogram += np.bincount(
            (cell + index % ORIENTATIONS).ravel(), weight.ravel(), minlength=len(histogram)
        )
    points = x.size / (GRID * GRID)
    return histogram.reshape(GRID * GRID, ORIENTATIONS) / points
