"""The memory that a process really takes stays within what was planned."""

from pathlib import Path

import pytest

from memory.planned_step import check_growth
from own_process import in_own_process
from tiers import first_tier

SAMPLED = (260, 0.5, "replay", True)

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(),
    reason="peak memory of a part of a run is read from /proc/self, which is not here",
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("budget_mb", "ratio", "execution", "keep"),
    first_tier([(330, None, "split", False), SAMPLED], SAMPLED),
)
def test_training_grows_by_the_budget_and_a_tenth_at_most(budget_mb, ratio, execution, keep):
    in_own_process(check_growth, budget_mb, ratio, execution, keep)
