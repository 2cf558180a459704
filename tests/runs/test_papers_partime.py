"""Paper 002's target: what it needs, and that a changed knob re-runs what depends on it."""

import pytest

pytestmark = pytest.mark.workflow

STEPS = {
    "partime": "frames gradients classification flow speedup balance messages timeline baselines "
    "memory claims",
    "sbp": "table1 table2 table3 table4 table5 figure1 figure4 figure6 gradients claims",
}
FOLDER = "results/papers/partime"
QUICK = {"layers": 8, "maps": 2, "sides": [16], "outputs": [2], "encoder_side": 64, "depths": [2]}
QUICK |= {"pairs": 2, "measured_seconds": 0.01}


@pytest.mark.parametrize("paper", STEPS)
def test_a_target_has_every_step_of_its_paper_once(bare, paper):
    planned = bare.planned(f"{paper}_figures")
    own = {rule: count for rule, count in planned.items() if rule.startswith("papers_")}
    assert own == {f"papers_{paper}_{step}": 1 for step in STEPS[paper].split()}
    assert "temporal_train" not in planned or paper != "partime"


def test_a_second_run_does_nothing_and_a_changed_knob_re_runs_what_depends_on_it(bare):
    wanted = [f"{FOLDER}/messages.md", f"{FOLDER}/timeline.svg"]
    config = {"papers": {"partime": {"speed": QUICK}}}
    bare.make(*wanted, config=config)
    assert bare.planned(*wanted, config=config) == {}
    changed = {"papers": {"partime": {"speed": {**QUICK, "maps": 3}}}}
    expected = {"papers_partime_messages": 1, "papers_partime_timeline": 1}
    assert bare.planned(*wanted, config=changed) == expected
    others = [{"speed": QUICK, "flow": {"maps": 3}}, {"speed": {**QUICK, "pairs": 3}}]
    for other in others:
        assert bare.planned(*wanted, config={"papers": {"partime": other}}) == {}


def test_the_target_of_paper_000_times_runs_and_judges_them(bare):
    planned = bare.planned("ring_figures", config={"scaling": {"ranks": [1, 2], "repeats": 2}})
    assert planned["scaling_run"] == 2 * 5  # alone, and two exchanges on one and two ranks
    assert planned["papers_ring_fits"] == planned["papers_ring_claims"] == 1
    assert not {rule for rule in planned if rule.startswith("papers_") and "ring" not in rule}
