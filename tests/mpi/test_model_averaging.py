"""Ranks that average models have the bits of learners in one process, and go on after a stop."""

from pathlib import Path

import pytest

from tiers import first_tier

CASES = Path(__file__).with_name("averaging_cases.py")
AVERAGES = {1: 15, 2: 9, -1: 3}  # in three epochs of five steps, with one at the end of each
AAVG = [f"aavg,k={k},whole={whole}" for k in AVERAGES for whole in (0, 1)]
BY_TORCH = [f"periodic,k={k},whole=0" for k in AVERAGES]
BY_SGD = ["aavg,k=2,whole=0,optimiser=sgd", "aavg,k=2,whole=1,optimiser=sgd"]
OURS = [(ranks, case) for ranks in (1, 2, 3, 4) for case in AAVG + BY_SGD]
ON_RANKS = OURS + [(ranks, case) for ranks in (2, 3) for case in BY_TORCH]
IN_FIRST_TIER = [one for one in ON_RANKS if one[0] == 3]
REFUSED = ("aavg,wire=float16", "aavg,overlap=1")

our_cases = pytest.mark.parametrize(
    ("ranks", "case"), first_tier(OURS, *[one for one in OURS if one[0] == 3])
)
every_case = pytest.mark.parametrize(("ranks", "case"), first_tier(ON_RANKS, *IN_FIRST_TIER))


@pytest.fixture(scope="module")
def trained(rows_of, both_tiers) -> dict[tuple[int, str], dict]:
    """What came of all cases, in one job."""
    tier = [*(ON_RANKS if both_tiers else IN_FIRST_TIER), *((2, case) for case in REFUSED)]
    rows = rows_of(4, CASES, *(f"{ranks}:{case}" for ranks, case in tier), timeout=300)
    return {(int(word[0]), word[2:]): row for word, row in rows.items()}


@our_cases
def test_ranks_have_the_bits_of_learners_in_one_process(trained, ranks, case):
    row = trained[ranks, case]
    assert len(row["ranks"]) == ranks
    assert row["ranks"] == row["in_process"]
    k = int(case.split("k=")[1].split(",")[0])
    assert row["averages"] == [AVERAGES[k]] * 2


@pytest.mark.full
@pytest.mark.parametrize("case", BY_TORCH)
def test_torch_averages_two_models_to_the_same_bits(trained, case):
    """Halves add up without rounding."""
    row = trained[2, case]
    assert row["ranks"] == row["in_process"]
    assert len(set(row["averages"])) == 1


@every_case
def test_a_stopped_run_goes_on_with_the_same_bits(trained, ranks, case):
    row = trained[ranks, case]
    assert row["resumed"] == row["ranks"]
    assert row["sent"][0] == row["sent"][1]


@every_case
def test_what_is_averaged_is_alike_and_the_rest_is_not(trained, ranks, case):
    made, whole = trained[ranks, case]["ranks"], "whole=1" in case
    for epoch in range(3):
        for kind in ("parameters", "buffers", "state"):
            own = {epochs[epoch][0][kind] for epochs in made}
            assert len(own) == (1 if whole or kind == "parameters" else ranks), kind
        validated = {epochs[epoch][1]["buffers"] for epochs in made}
        assert validated == {made[0][epoch][0]["buffers"]}
    assert len({epoch[0]["parameters"] for epoch in made[0]}) == 3, "it must learn in each epoch"


@our_cases
def test_an_average_sends_twice_its_values_to_all_ranks_but_one(trained, ranks, case):
    """2(n - 1) · 4 bytes for each value and flag, · 8 for buffers, which are summed in float64."""
    row = trained[ranks, case]
    single, double = row["values"]["parameters"], 0
    averages = row["averages"][0]
    if "whole=1" in case:
        single += row["values"]["tensors"] + row["values"]["state"]
        double = 2 * row["values"]["channels"] + 1  # means, variances, batches seen
    expected = averages * 2 * (ranks - 1) * (4 * single + 8 * double)
    if "whole=1" in case:
        # before the end of the first epoch no learner has a state of the rarely taken path
        rare = 13 * 2 + 2
        values = rare if "sgd" in case else 2 * rare + 2
        expected -= (averages // 3 - 1) * 2 * (ranks - 1) * 4 * values
    assert row["sent"][0] == expected


@pytest.mark.parametrize("case", REFUSED)
def test_another_wire_and_overlap_are_refused(trained, case):
    errors = trained[2, case]["errors"]
    assert len(errors) == 2
    for error in errors:
        assert "exchange aavg averages models in float32, between steps" in error


LATE = """
import time, torch
from actionspan.parallel import ModelAveraging, ParallelSettings
from actionspan.parallel.launch import world
comm = world()
model = torch.nn.Linear(2, 1)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
replica = ModelAveraging(comm, model, optimiser, ParallelSettings(stall_seconds=2))
time.sleep(6 + 4 * comm.Get_rank())
model(torch.ones(1, 2)).sum().backward()
replica.step()
replica.synchronise()
replica.close()
"""


@pytest.mark.full
def test_learners_may_come_later_than_a_stall_by_as_long_as_they_worked(mpirun):
    """Rank 0 works 6 s, and rank 1 comes 4 s after it: longer than the 2 s of a stall."""
    assert mpirun(2, ["-c", LATE]).returncode == 0
