"""Many ranks train as one: the same trajectory, whatever the exchange."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

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


def parsed(output: str) -> dict[str, dict]:
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {row["case"]: row for row in rows}


@cache
def alone(optimiser: str) -> dict:
    """One process that knows nothing of ranks."""
    words = [sys.executable, str(CASES), f"none,optimiser={optimiser}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    (made,) = parsed(done.stdout).values()
    return made


@pytest.fixture(scope="module")
def trained(mpirun):
    """All variants, run twice, on `workers` workers."""

    @cache
    def run(workers: int) -> tuple[dict[str, dict], dict[str, dict]]:
        words = [f"{case},optimiser=adam" for case in VARIANTS]
        words += [f"{case},optimiser=sgd" for case in BY_SGD]
        served = [word for word in words if word.startswith(("ps,", "ps_async,"))]
        others = [word for word in words if word not in served]
        made: tuple[dict[str, dict], dict[str, dict]] = ({}, {})
        for once in made:
            once.update(parsed(mpirun(workers, CASES, *others, timeout=120).stdout))
            once.update(parsed(mpirun(workers + 1, CASES, *served, timeout=120).stdout))
        return made

    return run


@pytest.mark.parametrize(
    ("case", "optimiser"), [(x, "adam") for x in VARIANTS] + [(x, "sgd") for x in BY_SGD]
)
@pytest.mark.parametrize("workers", RANKS)
def test_the_trajectory_is_that_of_one_rank(trained, workers, case, optimiser):
    made, reference = trained(workers)[0][f"{case},optimiser={optimiser}"], alone(optimiser)
    assert len(made["losses"]) == 50
    np.testing.assert_allclose(made["losses"], reference["losses"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(made["weights"], reference["weights"], rtol=0, atol=1e-5)
    moved = np.abs(np.diff(reference["losses"])).max()
    assert moved > 1e-3, "the trajectory must be one that a wrong gradient would leave"


@pytest.mark.parametrize("case", VARIANTS)
@pytest.mark.parametrize("workers", RANKS)
def test_all_ranks_hold_the_same_bits_and_a_second_run_repeats_them(trained, workers, case):
    first, second = (once[f"{case},optimiser=adam"] for once in trained(workers))
    served = case.startswith(("ps_async", "ps")) and not case.startswith(("ps_w", "ps_s"))
    assert len(first["digests"]) == workers + served
    assert len(set(first["digests"])) == 1
    assert first["digests"] == second["digests"]
    assert first["worker"] == [None if served else 0, workers]


def test_overlapped_buckets_give_the_same_bits_as_those_exchanged_afterwards(trained):
    made = trained(3)[0]
    for name in ("ring", "mpi", "gloo", "ps_sharded"):
        one, two = (
            made[f"{case},optimiser=adam"]["digests"] for case in (name, f"{name},overlap=1")
        )
        assert one == two


def test_the_bucket_size_decides_how_many_there_are(trained):
    made = trained(2)[0]
    sizes = made["ring,optimiser=adam"]["reports"][0]["bucket_bytes"]
    whole = made["ring,bucket_kib=4096,optimiser=adam"]["reports"][0]["bucket_bytes"]
    assert len(sizes) > 2
    assert len(whole) == 1
    values = 7 * 24 * 3 + 24 + 24 * 3 + 3 + 7 * 40 + 40 + 40 * 3 + 3 + 3 * 2 + 2 + 1
    assert sum(sizes) == whole[0] == 4 * (values + 11), "a value and a flag for each parameter"


@pytest.mark.parametrize("case", ["ring", "ps_sharded", "ps", "ps_async,staleness=0"])
def test_what_ranks_send_is_told(trained, case):
    """Per step, of K bytes: ring and sharded server 2(n - 1)·K in all, a server 2n·K."""
    made = trained(3)[0]
    row = made[f"{case},optimiser=adam"]
    sent = sum(report["sent_bytes"] for report in row["reports"])
    whole = sum(made["ring,optimiser=adam"]["reports"][0]["bucket_bytes"])  # with 11 flags
    if case == "ps_async,staleness=0":
        flat = 4 * (len(row["weights"]) - 3 + 11)  # without the frozen ones, with flags
        # each after 16 bytes of its version; at the end a worker says that it rests
        assert sent == 50 * 2 * 3 * (flat + 16) + 3 * 16
    else:
        assert sent == 50 * (2 * 3 if case == "ps" else 2 * 2) * whole
    assert "sent_bytes" not in made["mpi,optimiser=adam"]["reports"][0]


@pytest.mark.parametrize("case", ["ring", "ps", "ps_async,staleness=0"])
def test_buffers_are_those_of_the_first_worker(trained, case):
    batches = [16 if step % 3 < 2 else 14 for step in range(50)]
    made = trained(3)[0][f"{case},optimiser=adam"]
    assert made["seen"] == sum(rows // 3 for rows in batches)


def test_the_bound_of_a_synchronous_server_lets_no_gradient_age(trained):
    report = trained(3)[0]["ps_async,staleness=0,optimiser=adam"]["reports"][0]
    assert set(report["staleness"]) == {"0"}


@pytest.mark.parametrize(
    "case", ["ps_async,wire=float16", "ps_async,overlap=1", "mpi,wire=float16"]
)
def test_what_an_exchange_does_not_do_is_refused(mpirun, case):
    done = mpirun(2, CASES, case, check=False)
    assert done.returncode != 0
    assert "ValueError: " in done.stderr
    assert "float32" in done.stderr


@pytest.mark.parametrize("bound", [1, 2, 100])
def test_no_gradient_is_staler_than_the_bound(mpirun, bound):
    made = parsed(mpirun(5, CASES, f"ps_async,staleness={bound}", timeout=60).stdout)
    (row,) = made.values()
    ages = {int(age): count for age, count in row["reports"][0]["staleness"].items()}
    assert max(ages) <= bound
    assert 0 < sum(ages.values()) <= 4 * 50
    if bound == 100:
        assert max(ages) >= 1, "four workers that do not wait must overtake one another"
        assert sum(ages.values()) == 4 * 50
    assert len(set(row["digests"])) == 1
    assert row["losses"][-1] < row["losses"][0] * 0.7


def test_half_precision_on_the_wire_costs_little_and_keeps_ranks_equal(mpirun):
    words = [f"{name},wire={wire}" for name in ("ring", "ps_sharded", "ps_worker", "auto")
             for wire in ("float16", "bfloat16")]  # fmt: skip
    made = parsed(mpirun(3, CASES, *words, timeout=60).stdout)
    reference = alone("adam")
    for word in words:
        assert len(set(made[word]["digests"])) == 1
        off = np.abs(np.array(made[word]["losses"]) - reference["losses"]).max()
        assert 1e-8 < off < 2e-3, word
