"""The fits that papers 000 and 001 print, and the claims that they decide."""

import numpy as np

from actionspan.arrays import Float64
from actionspan.scaling import timing_model
from actionspan.scaling.timing_model import model_columns
from actionspan_papers.claims import Finding, by_print

GPUS = 8
"""The most that were run; the equations hold from 2 on."""
# T, C and P in seconds of T/n + C·n + P (equation 1), and of T/n + C·(n - 1)/n + P (equation 2)
PRINTED = {"ps": (4223.8, 12.1, 290.8), "ring": (4400.1, 59.6, 363.5)}
RING_BY_EQUATION_1 = -3.8
"""C of equation 1 fitted to the ring's times; its T and P are not printed."""


def times(exchange: str, gpus: Float64) -> Float64:
    """Return the (m,) times of the printed fit of `ps` or `ring`, for (m,) numbers of GPUs."""
    return model_columns(exchange, gpus) @ PRINTED[exchange]


def ratios(exchange: str, gpus: Float64) -> Float64:
    """Return the (m,) speed ratios t0/t; one GPU sends nothing, so t0 is T + P."""
    compute, _, constant = PRINTED[exchange]
    return (compute + constant) / times(exchange, gpus)


def printed_findings() -> list[Finding]:
    """Judge by the printed fits on 2 to 8 GPUs, and by the traffic, counted."""
    gpus = np.arange(2.0, GPUS + 1)
    (t_ps, c_ps, p_ps), (t_ring, c_ring, p_ring) = PRINTED["ps"], PRINTED["ring"]
    ps, ring = times("ps", gpus), times("ring", gpus)
    lead = ratios("ring", gpus) - ratios("ps", gpus)
    alone = t_ps + p_ps
    # equation 2 is the curve a/n + b·n + c with b = 0
    slope, level = t_ring - c_ring, c_ring + p_ring
    ((_, last),) = timing_model.faster_ranges(PRINTED["ps"], (slope, 0.0, level))
    beyond = np.array([float(last or 0) + 1])
    by_equation_1 = timing_model.least_squares(model_columns("ps", gpus), ring)
    saved = c_ps * gpus - c_ring * (gpus - 1) / gpus
    apart = 100 * abs(t_ring / t_ps - 1)
    # after the scatter GPU n has the sum of block n + 1; the printed gather begins with n - 1
    right = [size for size in range(2, GPUS + 1) if (1 + 1) % size == 0]
    central, each = 2 * GPUS, 2 * (GPUS - 1) / GPUS  # K through a server, and from a GPU
    exact = {
        "faster": ps[-1] - ring[-1],
        "own": lead[-1],
        "common": alone / ring[-1] - alone / ps[-1],
        "growing": np.diff(lead).min(),
        "beyond": (times("ps", beyond) - times("ring", beyond))[0],
        "less": saved[-1],
        "negative": -by_equation_1.coefficients[1],
        "same": 1 - apart,
        "gather": 2 * len(right) - len(gpus),
        "total": central - each * GPUS,
        "worker": 2 * (GPUS - 1) - each * GPUS,
        "busiest": central - each,
    }
    words = {
        **{"gpus": GPUS, "ring": ring[-1], "ps": ps[-1], "alone": alone, "apart": apart},
        **{f"{name}_ratio": ratios(name, gpus)[-1] for name in PRINTED},
        **{"last": last, "beyond": int(beyond[0]), "less_from": int(gpus[saved > 0][0])},
        "right_from_1": [size for size in range(2, GPUS + 1) if (1 + 2) % size == 0],
        **{"right": right, "central": central, "each": each, "every": each * GPUS},
        **{"equal": t_ps - slope, "printed": RING_BY_EQUATION_1},
        "leads": ", ".join(f"{value:+.3f}" for value in lead),
        "noise": abs(RING_BY_EQUATION_1) / float(by_equation_1.inverse[1, 1]) ** 0.5,
        "open": f"Run times leave the ring's C open: any C with T = {slope:.1f} + C and "
        f"P = {level:.1f} - C gives the same times",
    }
    return by_print("ring", exact, words)
