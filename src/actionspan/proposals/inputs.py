"""What the evaluator (PEM) may see of a candidate beside its 32 features."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOUNDARY_INPUTS = 3  # p_start, p_end, length


def boundary_inputs(scores: ArrayLike, segments: ArrayLike) -> NDArray[np.float32]:
    """Return p_start, p_end and the length of each candidate.

    BSN's features are samples of actionness at places that scale with the candidate: they tell
    neither how sure its boundaries are nor how long it is.

    Args:
        scores: (M, 2) p_start and p_end.
        segments: (M, 2) starts and ends in 0…1 of the video.

    Returns:
        (M, 3), all in 0…1; the length is a share of the video.
    """
    both = np.asarray(scores, np.float32).reshape(-1, 2)
    ends = np.asarray(segments, np.float32).reshape(-1, 2)
    return np.column_stack([both, ends[:, 1] - ends[:, 0]])
