"""Labels against a count of fine points, closed forms, and the real ActivityNet annotations."""

import numpy as np
from hypothesis import strategies as st

FINE = 200  # points a bin in the brute-force count


def brute_force(segments, duration, steps, rule, ratio):
    """g by counting points: for each bin, region and instance apart, then the maximum."""
    points = (np.arange(steps * FINE) + 0.5) / (steps * FINE) * duration
    best = np.zeros((steps, 3))
    bin_seconds = duration / steps
    for start, end in segments:
        start, end = np.clip([start, end], 0, duration)
        if rule == "bsn":
            half, inset = max(bin_seconds, ratio * (end - start)) / 2, 0.0
        else:
            half = inset = bin_seconds / 2
        regions = [(side - half, side + half) for side in (start, end)]
        regions.insert(1, (start + inset, end - inset))
        for kind, (low, high) in enumerate(regions):
            inside = (points >= low) & (points <= high)
            best[:, kind] = np.maximum(best[:, kind], inside.reshape(steps, FINE).mean(axis=1))
    return best


@st.composite
def videos(draw):
    duration = draw(st.floats(0.5, 5000))
    fractions = draw(st.lists(st.tuples(st.floats(-0.1, 1.1), st.floats(-0.1, 1.1)), max_size=6))
    return np.sort(np.array(fractions).reshape(-1, 2), axis=1) * duration, duration
