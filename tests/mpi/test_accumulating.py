"""Several backward passes a step give what one pass gives, whatever the exchange."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mpi import accumulating_cases
from tiers import first_tier

CASES = Path(__file__).with_name("accumulating_cases.py")
SUMMING = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo", "ps_async,staleness=0")
AVERAGING = ("aavg,averaging_steps=2", "periodic,averaging_steps=2")
OVERLAPPED = ("ring,overlap=1", "ps_sharded,overlap=1", "mpi,overlap=1", "gloo,overlap=1")
LAST = ("ring", "ring,overlap=1", "ps,overlap=1")  # with no pass outside the block, on some or all
WORKERS = (1, 2, 3)
CALLS = [
    *(f"{workers}:{case}" for workers in WORKERS for case in (*SUMMING, *OVERLAPPED, *AVERAGING)),
    *(
        f"{workers}:{case},last={x}"
        for workers in WORKERS
        for case in LAST
        for x in ("none", "odd")
    ),
]


ON_THREE = [call for call in CALLS if call[0] == "3"]


@cache
def alone() -> np.ndarray:
    """The weights of one process that knows nothing of ranks, by one pass a step."""
    return np.array(accumulating_cases.run("none", None)["one"])


@pytest.fixture(scope="module")
def trained(mpirun, both_tiers) -> dict[str, dict]:
    """What came of all cases, in one job."""
    calls = CALLS if both_tiers else ON_THREE
    lines = mpirun(max(WORKERS) + 1, CASES, *calls, timeout=300).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return {row["case"]: row for row in rows}


@pytest.mark.parametrize("call", first_tier(CALLS, *ON_THREE))
def test_several_passes_give_what_one_gives(trained, call):
    row = trained[call]
    near = 1e-6 if "ps_async" in call else 1e-12
    np.testing.assert_allclose(row["several"], row["one"], rtol=0, atol=near)
    if "aavg" not in call and "periodic" not in call:  # they sum: any number of ranks is as one
        every = np.broadcast_to(alone(), np.shape(row["several"]))
        near = 1e-5 if "ps_async" in call else 1e-12
        np.testing.assert_allclose(row["several"], every, rtol=0, atol=near)


def test_the_steps_move_the_weights_that_passes_use():
    moved = alone() != np.array(initial())
    never = 5 * 4 + 4
    assert moved[:-never].all()
    assert not moved[-never:].any(), "no pass uses them, so weight decay leaves them too"


def initial() -> list[float]:
    """Weights before the first step."""
    import torch

    torch.manual_seed(0)
    net = accumulating_cases.Net(torch.float64)
    return torch.cat([each.detach().flatten() for each in net.parameters()]).tolist()
