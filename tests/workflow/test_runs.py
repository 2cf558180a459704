"""Names of runs, their seeds and their folds."""

import re

import pytest

from actionspan.workflow.runs import POOLED, RunName, run_pattern, seeded


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mtn", ("mtn", 1, "")),
        ("mtn-seed2", ("mtn", 2, "")),
        ("my-seedless", ("my-seedless", 1, "")),
        ("mtn-seed1", ("mtn-seed1", 1, "")),
        ("a-seed2-seed30", ("a-seed2", 30, "")),
        ("mtn-fold1", ("mtn", 1, "1")),
        ("mtn-seed2-fold13", ("mtn", 2, "13")),
        ("mtn-folds", ("mtn", 1, POOLED)),
        ("mtn-seed2-folds", ("mtn", 2, POOLED)),
        ("my-fold", ("my-fold", 1, "")),
        ("mtn-fold0", ("mtn-fold0", 1, "")),
    ],
)
def test_a_name_has_a_seed_and_a_fold(name, parts):
    assert RunName.of(name) == RunName(*parts)
    assert str(RunName(*parts)) == name


def test_an_empty_name_is_refused():
    with pytest.raises(ValueError, match="an empty name"):
        RunName.of("")


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        (
            seeded(["mtn", "a.b"]),
            "mtn mtn-seed2 mtn-seed10 a.b",
            "mtn-seed1 mtn-seed02 mtn-seed axb",
        ),
        (seeded([]), "", "mtn"),
        (run_pattern(), "none-1 ring-4 ps-16", "none-2 ring-0 ring star-2"),
    ],
)
def test_patterns_match_the_names_and_their_seeds_alone(pattern, matched, others):
    names = [*matched.split(), *others.split(), ""]
    assert [name for name in names if re.fullmatch(pattern, name)] == matched.split()
