"""Paper 000's target: verdicts on timed runs, without which its own numbers are judged."""

import pytest

from runs.conftest import copy_program

pytestmark = pytest.mark.workflow


def test_the_target_times_runs_and_judges_them(tmp_path):
    program = copy_program(tmp_path)
    planned = program.planned("ring_figures", config={"scaling": {"ranks": [1, 2], "repeats": 2}})
    assert planned["scaling_run"] == 2 * 5  # alone, and two exchanges on one and two ranks
    assert planned["papers_ring_fits"] == planned["papers_ring_claims"] == 1
    assert not {rule for rule in planned if rule.startswith("papers_") and "ring" not in rule}
