"""Proposals from shot boundaries alone: a rule that knows cuts and lengths, and no action.

In footage that is spliced from clips every instance begins and ends at a cut, and this rule scores
like a trained network. So it is what a figure of edited footage has to be held against; in uncut
footage it finds next to nothing.

Candidates are runs of shots, each worth what `shot_runs` says, times the density of the training
instances' lengths at its own.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import gaussian_kde

from actionspan.arrays import Float64
from actionspan.proposals.shots import shot_runs


def cut_proposals(
    cuts: Float64, duration: float, lengths: Sequence[float], most: int
) -> tuple[Float64, Float64]:
    """Return the at most `most` runs of shots (P, 2) that are worth most, and their worth (P,).

    Args:
        cuts: (K, 2) when the video is cut, in seconds, rising, and how much the colours change.
        duration: Of the video in seconds.
        lengths: Of training instances in seconds; of fewer than two that differ, no length counts
            for more than another.
        most: How many are kept.
    """
    runs, worth = shot_runs(cuts, duration)
    logarithms = np.log([length for length in lengths if length > 0])
    if len(np.unique(logarithms)) > 1:
        worth = worth * gaussian_kde(logarithms)(np.log(runs[:, 1] - runs[:, 0]))
    order = np.argsort(-worth, kind="stable")[:most]
    return runs[order], worth[order]
