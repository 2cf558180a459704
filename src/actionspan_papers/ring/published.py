"""The fits that paper 000 prints (section IV), in seconds; paper 001 prints the same for MTN."""

from actionspan.arrays import Float64
from actionspan.scaling.timing_model import model_columns

GPUS = 8
"""The most that were run; the equations hold from 2 on."""
# T, C and P of T/n + C·n + P (equation 1), and of T/n + C·(n - 1)/n + P (equation 2)
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
