"""The analysis of a method: from files written by hand, and planned for all methods and seeds."""

import pytest

pytestmark = pytest.mark.workflow

RULES = tuple(f"evaluation_{step}" for step in ("evaluate", "reliability", "worst"))
MADE = ("evaluation_evaluate", "evaluation_baseline", *RULES[1:])
FILES = (
    *(f"misses/{{}}{suffix}" for suffix in (".tsv", ".instances.tsv", ".md", ".svg")),
    *(f"reliability/{{}}{suffix}" for suffix in (".tsv", ".md", ".svg")),
    "videos/{}.md",
    "reader/{}.json",
    "reader/{}.md",
)


def test_every_file_is_made_from_the_proposals_of_a_run(project):
    project.make(*(f"results/evaluation/{file.format('mtn')}" for file in FILES))
    for file in FILES:
        assert (project.folder / "results/evaluation" / file.format("mtn")).stat().st_size > 100


def test_each_file_can_be_named_for_models_baselines_and_further_seeds(bare):
    names = ("origin", "mtn-seed3", "random", "random-seed2")
    wanted = [f"results/evaluation/{file.format(name)}" for file in FILES for name in names]
    planned = bare.planned(*wanted)
    scored = {"evaluation_evaluate": 2, "evaluation_baseline": 2}
    assert {rule: planned[rule] for rule in MADE} == {**dict.fromkeys(RULES, 4), **scored}


def test_one_target_makes_all_of_them_and_a_plain_run_few(bare):
    planned = bare.planned("analysis")
    # origin, span and mtn, and the four baselines
    scored = {"evaluation_evaluate": 3, "evaluation_baseline": 4}
    assert {rule: planned[rule] for rule in MADE} == {**dict.fromkeys(RULES, 7), **scored}
    plain = bare.planned()
    assert {rule: plain[rule] for rule in set(MADE) & set(plain)} == scored
