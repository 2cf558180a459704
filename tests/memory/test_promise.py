"""The memory that a process really takes stays within what was planned."""

from pathlib import Path

import pytest

from memory.planned_step import check_growth
from own_process import in_own_process

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(),
    reason="peak memory of a part of a run is read from /proc/self, which is not here",
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("budget_mb", "ratio", "execution", "keep"),
    [(330, None, "split", False), (260, 0.5, "replay", True)],
)
def test_training_grows_by_the_budget_and_a_tenth_at_most(budget_mb, ratio, execution, keep):
    in_own_process(check_growth, budget_mb, ratio, execution, keep)
