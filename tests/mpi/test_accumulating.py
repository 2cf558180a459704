"""Several backward passes a step give what one pass gives, whatever the exchange."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from mpi import accumulating_cases

SUMMING = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo", "ps_async,staleness=0")
AVERAGING = ("aavg,averaging_steps=2", "periodic,averaging_steps=2")
OVERLAPPED = ("ring,overlap=1", "ps_sharded,overlap=1", "mpi,overlap=1", "gloo,overlap=1")
LAST = [  # no pass outside the block, on all or some ranks
    f"{case},last={x}"
    for case in ("ring", "ring,overlap=1", "ps,overlap=1")
    for x in ("none", "odd")
]
CALLS = [
    f"{workers}:{case}"
    for workers in (1, 2, 3)
    for case in (*SUMMING, *OVERLAPPED, *AVERAGING, *LAST)
]


@cache
def alone() -> np.ndarray:
    """The weights of one process that knows nothing of ranks, by one pass a step."""
    return np.array(accumulating_cases.run("none", None)["one"])


@pytest.fixture(scope="module")
def trained(rows_of) -> dict[str, dict]:
    return rows_of(4, Path(accumulating_cases.__file__), *CALLS, timeout=300)


@pytest.mark.parametrize("call", CALLS)
def test_several_passes_give_what_one_gives(trained, call):
    row = trained[call]
    near = 1e-6 if "ps_async" in call else 1e-12
    np.testing.assert_allclose(row["several"], row["one"], rtol=0, atol=near)
    if "aavg" not in call and "periodic" not in call:  # they sum: any number of ranks is as one
        every = np.broadcast_to(alone(), np.shape(row["several"]))
        near = 1e-5 if "ps_async" in call else 1e-12
        np.testing.assert_allclose(row["several"], every, rtol=0, atol=near)


def test_the_steps_move_the_weights_that_passes_use():
    torch.manual_seed(0)
    initial = accumulating_cases.weights_of(accumulating_cases.Net(torch.float64))
    moved = alone() != np.array(initial)
    never = 5 * 4 + 4
    assert moved[:-never].all()
    assert not moved[-never:].any(), "no pass uses them, so weight decay leaves them too"
