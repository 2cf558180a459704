"""Many ranks train as one: the same trajectory, whatever the exchange."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mpi import replica_cases
from tiers import first_tier

CASES = Path(__file__).with_name("replica_cases.py")
SYNCHRONOUS = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo")
VARIANTS = (
    *SYNCHRONOUS,
    "ps_async,staleness=0",
    "ring,overlap=1",
    "mpi,overlap=1",
    "gloo,overlap=1",
    "ps_sharded,overlap=1",
    "ring,bucket_kib=4096",
    "auto,auto_kib=0",
    "auto,auto_kib=1000",
)
RANKS = (2, 3, 5)
BY_SGD = ("ring", "ps_sharded", "mpi", "ps_async,staleness=0")


ON_MANY = ("ring", "ring,overlap=1", "ps_sharded", "ps_async,staleness=0")
REPEATED = [(workers, case) for workers in RANKS[:-1] for case in VARIANTS]
REPEATED += [(RANKS[-1], case) for case in ON_MANY]
STALENESS = (1, 2, 100)
REFUSED = ("ps_async,wire=float16", "ps_async,overlap=1", "mpi,wire=float16")
HALF = [
    f"{name},wire={wire}"
    for name in ("ring", "ps_sharded", "ps_worker", "auto")
    for wire in ("float16", "bfloat16")
]


@cache
def alone(optimiser: str) -> dict:
    """One process that knows nothing of ranks."""
    return replica_cases.run(f"none,optimiser={optimiser}", None)


def run(mpirun, words: list[str]) -> dict[str, dict]:
    ranks = max(int(word[0]) for word in words) + 1
    steps = {"STEPS": str(replica_cases.STEPS)}
    lines = mpirun(ranks, CASES, *words, timeout=600, env=steps).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return {row["case"]: row for row in rows}


TWICE = [f"{workers}:{case},optimiser=adam" for workers, case in REPEATED]


@pytest.fixture(scope="module", autouse=True)
def _steps(both_tiers) -> None:
    replica_cases.STEPS = 50 if both_tiers else 20


@pytest.fixture(scope="module")
def job(mpirun, both_tiers) -> dict[str, dict]:
    """What came of all cases, WORKERS:CASE; in the first tier of those on three workers."""
    words = [f"{workers}:{case},optimiser=adam" for workers in RANKS for case in VARIANTS]
    words += [f"{workers}:{case},optimiser=sgd" for workers in RANKS for case in BY_SGD]
    words += [f"4:ps_async,staleness={bound}" for bound in STALENESS]
    words += [f"3:{case}" for case in (*REFUSED, *HALF)]
    return run(mpirun, [word for word in words if both_tiers or word[0] == "3"])


@pytest.fixture(scope="module")
def second_job(mpirun) -> dict[str, dict]:
    return run(mpirun, TWICE)


@pytest.fixture(scope="module")
def trained(job) -> Callable[[int], dict[str, dict]]:
    """The cases on so many workers."""

    def on(workers: int) -> dict[str, dict]:
        start = f"{workers}:"
        return {case[len(start) :]: row for case, row in job.items() if case.startswith(start)}

    return on


@pytest.mark.parametrize(
    ("case", "optimiser"), [(x, "adam") for x in VARIANTS] + [(x, "sgd") for x in BY_SGD]
)
@pytest.mark.parametrize("workers", first_tier(RANKS, 3))
def test_the_trajectory_is_that_of_one_rank(trained, workers, case, optimiser):
    made, reference = trained(workers)[f"{case},optimiser={optimiser}"], alone(optimiser)
    assert len(made["losses"]) == replica_cases.STEPS
    np.testing.assert_allclose(made["losses"], reference["losses"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(made["weights"], reference["weights"], rtol=0, atol=1e-5)
    moved = np.abs(np.diff(reference["losses"])).max()
    assert moved > 1e-3, "the trajectory must be one that a wrong gradient would leave"


@pytest.mark.parametrize("case", VARIANTS)
@pytest.mark.parametrize("workers", first_tier(RANKS, 3))
def test_all_ranks_hold_the_same_bits(trained, workers, case):
    row = trained(workers)[f"{case},optimiser=adam"]
    served = case.startswith(("ps_async", "ps")) and not case.startswith(("ps_w", "ps_s"))
    assert len(row["digests"]) == workers + served
    assert len(set(row["digests"])) == 1
    assert row["worker"] == [None if served else 0, workers]


@pytest.mark.full
@pytest.mark.parametrize("case", TWICE)
def test_a_second_job_has_the_same_bits(job, second_job, case):
    assert job[case]["digests"] == second_job[case]["digests"]


def test_overlap_does_not_change_the_bits(trained):
    made = trained(3)
    for name in ("ring", "mpi", "gloo", "ps_sharded"):
        one, two = (
            made[f"{case},optimiser=adam"]["digests"] for case in (name, f"{name},overlap=1")
        )
        assert one == two


def test_the_bucket_size_decides_how_many_there_are(trained):
    made = trained(3)
    sizes = made["ring,optimiser=adam"]["reports"][0]["bucket_bytes"]
    whole = made["ring,bucket_kib=4096,optimiser=adam"]["reports"][0]["bucket_bytes"]
    assert len(sizes) > 2
    assert len(whole) == 1
    values = 7 * 24 * 3 + 24 + 24 * 3 + 3 + 7 * 40 + 40 + 40 * 3 + 3 + 3 * 2 + 2 + 1
    assert sum(sizes) == whole[0] == 4 * (values + 11), "a value and a flag for each parameter"


@pytest.mark.parametrize("case", ["ring", "ps_sharded", "ps", "ps_async,staleness=0"])
def test_bytes_that_ranks_send(trained, case):
    """Per step, of K bytes: ring and sharded server 2(n - 1)·K in all, a server 2n·K."""
    made = trained(3)
    row = made[f"{case},optimiser=adam"]
    sent = sum(report["sent_bytes"] for report in row["reports"])
    whole = sum(made["ring,optimiser=adam"]["reports"][0]["bucket_bytes"])  # with 11 flags
    if case == "ps_async,staleness=0":
        flat = 4 * (len(row["weights"]) - 3 + 11)  # without the frozen ones, with flags
        # each after 16 bytes of its version; at the end a worker says that it rests
        assert sent == replica_cases.STEPS * 2 * 3 * (flat + 16) + 3 * 16
    else:
        assert sent == replica_cases.STEPS * (2 * 3 if case == "ps" else 2 * 2) * whole
    assert "sent_bytes" not in made["mpi,optimiser=adam"]["reports"][0]


@pytest.mark.parametrize("case", ["ring", "ps", "ps_async,staleness=0"])
def test_buffers_are_those_of_the_first_worker(trained, case):
    batches = [16 if step % 3 < 2 else 14 for step in range(replica_cases.STEPS)]
    made = trained(3)[f"{case},optimiser=adam"]
    assert made["seen"] == sum(rows // 3 for rows in batches)


def test_the_bound_of_a_synchronous_server_lets_no_gradient_age(trained):
    report = trained(3)["ps_async,staleness=0,optimiser=adam"]["reports"][0]
    assert set(report["staleness"]) == {"0"}


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_exchange_does_not_do_is_refused(trained, case):
    errors = trained(3)[case]["errors"]
    assert len(errors) == 3 + case.startswith("ps_async")
    assert all("float32" in error for error in errors)


@pytest.mark.full
@pytest.mark.parametrize("bound", STALENESS)
def test_no_gradient_is_staler_than_the_bound(trained, bound):
    row = trained(4)[f"ps_async,staleness={bound}"]
    ages = {int(age): count for age, count in row["reports"][0]["staleness"].items()}
    assert max(ages) <= bound
    assert 0 < sum(ages.values()) <= 4 * replica_cases.STEPS
    if bound == 100:
        assert max(ages) >= 1, "four workers that do not wait must overtake one another"
        assert sum(ages.values()) == 4 * replica_cases.STEPS
    assert len(set(row["digests"])) == 1
    assert row["losses"][-1] < row["losses"][0] * 0.7


def test_half_precision_on_the_wire_costs_little_and_keeps_ranks_equal(trained):
    made, reference = trained(3), alone("adam")
    for word in HALF:
        assert len(set(made[word]["digests"])) == 1
        off = np.abs(np.array(made[word]["losses"]) - reference["losses"]).max()
        assert 1e-8 < off < 2e-3, word
