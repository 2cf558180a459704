"""Paper 002's target: what it needs, and that a changed knob re-runs what depends on it."""

import pytest

from runs.conftest import copy_program

pytestmark = pytest.mark.workflow

STEPS = (
    *("frames", "gradients", "classification", "flow", "speedup", "balance", "messages"),
    *("timeline", "baselines", "memory", "claims"),
)
FOLDER = "results/papers/partime"
QUICK = {
    "layers": 8,
    "maps": 2,
    "sides": [16],
    "outputs": [2],
    "encoder_side": 64,
    "depths": [2],
    "pairs": 2,
    "measured_seconds": 0.01,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return copy_program(tmp_path_factory.mktemp("partime"))


def own(planned):
    return {rule for rule in planned if rule.startswith("papers_partime_")}


def test_the_target_has_every_step_once(program):
    planned = program.planned("partime_figures")
    assert own(planned) == {f"papers_partime_{step}" for step in STEPS}
    assert all(planned[rule] == 1 for rule in own(planned))
    assert "temporal_train" not in planned


def test_a_second_run_does_nothing_and_a_changed_knob_re_runs_what_depends_on_it(program):
    wanted = [f"{FOLDER}/messages.md", f"{FOLDER}/timeline.svg"]
    config = {"papers": {"partime": {"speed": QUICK}}}
    program.make(*wanted, config=config)
    assert program.planned(*wanted, config=config) == {}
    changed = {"papers": {"partime": {"speed": {**QUICK, "maps": 3}}}}
    expected = {"papers_partime_messages": 1, "papers_partime_timeline": 1}
    assert program.planned(*wanted, config=changed) == expected
    others = [{"speed": QUICK, "flow": {"maps": 3}}, {"speed": {**QUICK, "pairs": 3}}]
    for other in others:
        assert program.planned(*wanted, config={"papers": {"partime": other}}) == {}


def test_the_target_of_paper_000_times_runs_and_judges_them(program):
    planned = program.planned("ring_figures", config={"scaling": {"ranks": [1, 2], "repeats": 2}})
    assert planned["scaling_run"] == 2 * 5  # alone, and two exchanges on one and two ranks
    assert planned["papers_ring_fits"] == planned["papers_ring_claims"] == 1
    assert not {rule for rule in planned if rule.startswith("papers_") and "ring" not in rule}
