"""The folds of a plan: names, files, subsets, and what does not go with them."""

import re

import pytest

from actionspan.errors import InputError
from actionspan.workflow.outcomes import method_of, of_fold
from actionspan.workflow.runs import seeded
from workflow.conftest import Wildcards

ANNOTATIONS = "results/dataset/annotations.json"


@pytest.fixture
def folds(planned):
    return planned({"evaluation": {"folds": 3, "subset": "validation"}}).folds


def test_names_of_folds_and_of_nothing_else(folds):
    singles, joined = ["mtn", "mtn-fold1", "mtn-seed2-fold3"], ["mtn-folds", "mtn-seed2-folds"]
    others = ["mtn-fold0", "mtn-fold4", "mtn-fold", "mtn-fold2-seed2"]
    for pattern, matched in ((folds.one, singles), (folds.pooled, joined)):
        pattern = seeded(["mtn"]) + pattern
        found = [name for name in singles + joined + others if re.fullmatch(pattern, name)]
        assert found == matched
    folders = ["", "folds/1/", "folds/3/", "folds/4/"]
    assert [name for name in folders if re.fullmatch(folds.folder, name)] == folders[:-1]


@pytest.mark.parametrize("count", [0, 1])
def test_without_cross_validation_no_name_has_a_fold(planned, count):
    folds = planned({"evaluation": {"folds": count}}).folds
    assert (folds.summary, list(folds.numbers)) == ([], [])
    names, off = (
        ("mtn-seed2", "mtn-fold1", "mtn-folds"),
        "evaluation.folds: cross-validation is off",
    )
    one, pooled = seeded(["mtn"]) + folds.one, seeded(["mtn"]) + folds.pooled
    assert [name for name in names if re.fullmatch(one, name)] == ["mtn-seed2"]
    assert not any(re.fullmatch(pooled, name) for name in names[1:])
    assert [name for name in ("", "folds/1/") if re.fullmatch(folds.folder, name)] == [""]
    with pytest.raises(InputError, match=off):
        folds.targets(Wildcards())
    with pytest.raises(InputError, match=off):
        folds.evaluations(Wildcards(folds="folds/"))


@pytest.mark.parametrize(
    ("name", "file", "subset"),
    [
        ("mtn-seed2", ANNOTATIONS, "validation"),
        ("mtn-fold2", "results/dataset/folds/2/annotations.json", "testing"),
        ("mtn-seed2-fold3", "results/dataset/folds/3/annotations.json", "testing"),
        ("mtn-folds", ANNOTATIONS, "training"),
    ],
)
def test_a_fold_has_its_own_files_and_subset(folds, name, file, subset):
    for key in ("model", "baseline", "method"):
        wildcards = Wildcards(**{key: name})
        assert method_of(wildcards) == name
        assert of_fold(ANNOTATIONS)(wildcards) == file
        assert folds.subset(wildcards) == subset
        assert folds.pooled_flag(wildcards) == ("--folds=3" if name == "mtn-folds" else "")


def test_joined_folds_are_of_one_seed(folds):
    for listed in ("proposals", "events"):
        assert folds.proposals(Wildcards(pooled="span-seed2-folds", listed=listed)) == [
            f"results/proposals/span-seed2-fold{number}/{listed}.json" for number in (1, 2, 3)
        ]


def test_only_a_model_on_sequences_has_events(planned):
    outcomes = planned({"evaluation": {"folds": 3}}).outcomes
    for name in ("span", "span-seed2", "span-fold3", "span-folds"):
        events = f"results/proposals/{name}/events.json"
        assert outcomes.events(Wildcards(method=name)) == [events]
        assert outcomes.listed(Wildcards(model=name)) == events
    for name in ("mtn", "mtn-folds", "random"):
        assert outcomes.events(Wildcards(method=name)) == []
    assert outcomes.listed(Wildcards(model="mtn")) == "results/proposals/mtn/proposals.json"


def test_the_tables_have_all_methods(folds, planned):
    methods = planned().outcomes.methods
    for folder, end in (("", ""), ("folds/", "-folds")):
        expected = [f"results/evaluation/{method}{end}.json" for method in methods]
        assert folds.evaluations(Wildcards(folds=folder)) == expected
    assert folds.summary == folds.targets(Wildcards())
    assert "results/evaluation/folds/summary.md" in folds.summary


def test_only_single_models_have_timelines(planned):
    outcomes = planned({"evaluation": {"folds": 3}}).outcomes
    for name in ("mtn", "mtn-seed2", "mtn-fold2"):
        flag = outcomes.timelines_flag(Wildcards(method=name))
        assert flag == f"--timelines results/evaluation/timelines/{name}"
    for name in ("random", "mtn-folds"):
        assert outcomes.timelines_flag(Wildcards(method=name)) == ""


def test_classifiers_that_learn_from_held_out_videos_are_refused(planned, tmp_path):
    scores = {"features": {"source": "scores"}, "evaluation": {"folds": 3}}
    with pytest.raises(InputError, match=r"evaluation\.folds: 3 does not go with features\.source"):
        planned(scores)
    (tmp_path / "walk").mkdir()
    (tmp_path / "walk/a.mp4").write_bytes(b"x")
    assert planned({**scores, "recognition": {"clips": str(tmp_path)}}).folds.summary
    assert planned({**scores, "evaluation": {"folds": 1}}).folds.summary == []
