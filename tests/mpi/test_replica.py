"""Many ranks train as one: the same trajectory, whatever the exchange."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mpi import replica_cases
from tiers import first_tier

SYNCHRONOUS = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo")
OVERLAPPED = ("ring", "mpi", "gloo", "ps_sharded")
SUMMING = (*SYNCHRONOUS, "ps_async,staleness=0", *(f"{name},overlap=1" for name in OVERLAPPED))
ONE_PASS = (*SUMMING, "ring,bucket_kib=4096", "auto,auto_kib=0", "auto,auto_kib=1000")
VARIANTS = (
    *ONE_PASS,
    *(f"{case},passes=3" for case in SUMMING),
    *(  # no pass outside the block, on all or some ranks
        f"{case},passes=3,last={last}"
        for case in ("ring", "ring,overlap=1", "ps,overlap=1")
        for last in ("none", "odd")
    ),
)
PASSES = ("ring,overlap=1", "ps_sharded", "ps_async,staleness=0")
LAST = ("ring,overlap=1,passes=3,last=odd", "ps,overlap=1,passes=3,last=none")
FIRST_VARIANTS = (*ONE_PASS, *(f"{case},passes=3" for case in PASSES), *LAST)
RANKS = (2, 3, 5)
BY_SGD = ("ring", "ps_sharded", "mpi", "ps_async,staleness=0")
TWICE = [f"{workers}:{case},optimiser=adam" for workers in RANKS[:-1] for case in ONE_PASS]
TWICE += [
    f"5:{case},optimiser=adam"
    for case in ("ring", "ring,overlap=1", "ps_sharded", "ps_async,staleness=0")
]
STALENESS = (1, 2, 100)
REFUSED = ("ps_async,wire=float16", "ps_async,overlap=1", "mpi,wire=float16")
HALF = [
    f"{name},wire={wire}"
    for name in ("ring", "ps_sharded", "ps_worker", "auto")
    for wire in ("float16", "bfloat16")
]

FIRST_HALF = "ring,wire=float16", "ps_sharded,wire=bfloat16"
COURSES = [(x, "adam") for x in VARIANTS] + [(x, "sgd") for x in BY_SGD]
FIRST_COURSES = [(x, "adam") for x in FIRST_VARIANTS] + [("ring", "sgd")]
FIRST = [f"3:{case},optimiser={name}" for case, name in FIRST_COURSES]
FIRST += [f"3:{case}" for case in (*REFUSED, *FIRST_HALF)]

on_workers = pytest.mark.parametrize("workers", first_tier(RANKS, 3))


@cache
def alone(optimiser: str) -> dict:
    """One process that knows nothing of ranks."""
    return replica_cases.run(f"none,optimiser={optimiser}", None)


@pytest.fixture(scope="module")
def run(rows_of, both_tiers) -> Callable[[list[str]], dict[str, dict]]:
    steps = replica_cases.STEPS = 50 if both_tiers else 10

    def run(words: list[str]) -> dict[str, dict]:
        ranks, script = max(int(word[0]) for word in words) + 1, Path(replica_cases.__file__)
        return rows_of(ranks, script, *words, timeout=600, env={"STEPS": str(steps)})

    return run


@pytest.fixture(scope="module")
def job(run, both_tiers) -> dict[str, dict]:
    """What came of all cases, WORKERS:CASE; in the first tier of some, on three workers."""
    words = [f"{workers}:{case},optimiser=adam" for workers in RANKS for case in VARIANTS]
    words += [f"{workers}:{case},optimiser=sgd" for workers in RANKS for case in BY_SGD]
    words += [f"4:ps_async,staleness={bound}" for bound in STALENESS]
    words += [f"3:{case}" for case in (*REFUSED, *HALF)]
    return run([word for word in words if both_tiers or word in FIRST])


@pytest.fixture
def on_three(job) -> dict[str, dict]:
    """The cases by Adam, or without a word of the optimiser, on three workers."""
    return {word[2:].removesuffix(",optimiser=adam"): row for word, row in job.items()
            if word.startswith("3:")}  # fmt: skip


@on_workers
@pytest.mark.parametrize(("case", "optimiser"), first_tier(COURSES, *FIRST_COURSES))
def test_the_trajectory_is_that_of_one_rank_and_all_hold_the_same_bits(
    job, workers, case, optimiser
):
    made, reference = job[f"{workers}:{case},optimiser={optimiser}"], alone(optimiser)
    served = case.split(",")[0] in ("ps", "ps_async")
    assert len(made["digests"]) == workers + served
    assert len(set(made["digests"])) == 1
    assert made["worker"] == [None if served else 0, workers]
    assert len(made["losses"]) == replica_cases.STEPS
    np.testing.assert_allclose(made["losses"], reference["losses"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(made["weights"], reference["weights"], rtol=0, atol=1e-5)
    moved = np.abs(np.diff(reference["losses"])).max()
    assert moved > 1e-3, "the trajectory must be one that a wrong gradient would leave"


@pytest.mark.full
def test_a_second_job_has_the_same_bits(job, run):
    again = run(TWICE)
    assert {case: job[case]["digests"] for case in TWICE} == {
        case: row["digests"] for case, row in again.items()
    }


def test_overlap_does_not_change_the_bits(on_three):
    for name in OVERLAPPED:
        assert on_three[name]["digests"] == on_three[f"{name},overlap=1"]["digests"], name


def test_the_bucket_size_decides_how_many_there_are(on_three):
    sizes = on_three["ring"]["reports"][0]["bucket_bytes"]
    whole = on_three["ring,bucket_kib=4096"]["reports"][0]["bucket_bytes"]
    assert len(sizes) > 2
    assert len(whole) == 1
    values = 7 * 24 * 3 + 24 + 24 * 3 + 3 + 7 * 40 + 40 + 40 * 3 + 3 + 3 * 2 + 2 + 1
    assert sum(sizes) == whole[0] == 4 * (values + 11), "a value and a flag for each parameter"


def test_bytes_that_ranks_send(on_three):
    """Per step, of K bytes: ring and sharded server 2(n - 1)·K in all, a server 2n·K."""
    whole = sum(on_three["ring"]["reports"][0]["bucket_bytes"])  # with 11 flags
    # without the frozen ones, each after 16 bytes of its version; at the end a worker rests
    asynchronous = 2 * 3 * (whole + 16), 3 * 16
    messages = {"ring": (4 * whole, 0), "ps_sharded": (4 * whole, 0), "ps": (6 * whole, 0)}
    for case, (each, last) in (messages | {"ps_async,staleness=0": asynchronous}).items():
        sent = sum(report["sent_bytes"] for report in on_three[case]["reports"])
        assert sent == replica_cases.STEPS * each + last, case
    ages = on_three["ps_async,staleness=0"]["reports"][0]["staleness"]
    assert set(ages) == {"0"}, "the bound lets no gradient age"
    assert "sent_bytes" not in on_three["mpi"]["reports"][0]


@pytest.mark.parametrize("case", ["ring", "ps", "ps_async,staleness=0"])
def test_buffers_are_those_of_the_first_worker(on_three, case):
    batches = [16 if step % 3 < 2 else 2 for step in range(replica_cases.STEPS)]
    assert on_three[case]["seen"] == sum(rows // 3 for rows in batches)


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_exchange_does_not_do_is_refused(on_three, case):
    errors = on_three[case]["errors"]
    assert len(errors) == 3 + case.startswith("ps_async")
    assert all("float32" in error for error in errors)


@pytest.mark.full
@pytest.mark.parametrize("bound", STALENESS)
def test_no_gradient_is_staler_than_the_bound(job, bound):
    row = job[f"4:ps_async,staleness={bound}"]
    ages = {int(age): count for age, count in row["reports"][0]["staleness"].items()}
    assert max(ages) <= bound
    # every third batch has rows for two of the four workers
    gradients = sum(4 if step % 3 < 2 else 2 for step in range(replica_cases.STEPS))
    assert 0 < sum(ages.values()) <= gradients
    if bound == 100:
        assert max(ages) >= 1, "four workers that do not wait must overtake one another"
        assert sum(ages.values()) == gradients
    assert len(set(row["digests"])) == 1
    assert row["losses"][-1] < row["losses"][0] * 0.7


@pytest.mark.parametrize("word", first_tier(HALF, *FIRST_HALF))
def test_half_precision_on_the_wire_costs_little_and_keeps_ranks_equal(on_three, word):
    assert len(set(on_three[word]["digests"])) == 1
    off = np.abs(np.array(on_three[word]["losses"]) - alone("adam")["losses"]).max()
    assert 1e-8 < off < 2e-3
