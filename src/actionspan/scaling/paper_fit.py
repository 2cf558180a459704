"""The papers' own fit of T, C and P to run times, for comparison with ours."""

from typing import Any

from actionspan.arrays import Float64
from actionspan.scaling.least_squares import explained, least_squares


def paper_fit(columns: Float64, seconds: Float64, *, is_ring: bool) -> dict[str, Any]:
    """Fit all three parameters to run times, as paper 000 does in its section IV.

    Where many sets fit equally well, as always for the ring, it returns the set of least norm, so
    that the result depends only on the runs; a search would end elsewhere from each start.

    Args:
        columns: (m, 3), what T, C and P are multiplied with.
        seconds: (m,) of complete runs.
        is_ring: Whether the model is the ring's.
    """
    fit = least_squares(columns, seconds)
    compute, communication, constant = fit.coefficients.tolist()
    alternative, note = None, "The only best fit."
    if not fit.determined:
        note = (
            "One of infinitely many equally good fits, the one of least norm: the runs are on too "
            "few different numbers of ranks."
        )
    if fit.rank == 2:
        # the set without communication fits as well
        slope, level = least_squares(columns[:, [0, 2]], seconds).coefficients.tolist()
        alternative = {"T": slope, "C": 0.0, "P": level}
        if is_ring:
            note = (
                f"One of infinitely many equally good fits, the one of least norm: any C with "
                f"T = {slope:.6g} + C and P = {level:.6g} - C gives the same times."
            )
    return {
        "T": compute,
        "C": communication,
        "P": constant,
        "rank": fit.rank,
        "condition": fit.condition,
        "r2": explained(seconds, columns @ fit.coefficients),
        "alternative": alternative,
        "note": note,
    }
