"""Three subsets and cross-validation over the training videos, from features to the tables."""

import csv
import json
import re
from collections import Counter

import pytest
import torch

from actionspan.dataset.folds import fold_parts
from actionspan.storage.model_files import read_model
from runs.conftest import EXTERNAL, copy_program, write_external, write_features

pytestmark = pytest.mark.workflow

SUBSETS = {f"v{number}": "training" for number in range(5)}
SUBSETS |= {"w0": "validation", "x0": "testing", "x1": "testing"}
TRAINING = [name for name, subset in SUBSETS.items() if subset == "training"]
TESTED = {"folds": 2, "subset": "testing", "baselines": ["random", "sliding"]}
CONFIG = {**EXTERNAL, "evaluation": TESTED}
# The weights of a fold.
FOLD = (
    "results/temporal/mtn-fold1/none-1/model.safetensors",
    "results/proposals/mtn-fold1/pem.safetensors",
)


def weights(project):
    network, evaluator = (read_model(project.folder / name).value for name in FOLD)
    return {**network["state_dict"], **evaluator["evaluator"]["weights"]}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    project = copy_program(tmp_path_factory.mktemp("folds"))
    write_external(project.folder, SUBSETS)
    return project


def test_a_fold_is_trained_on_files_of_its_own(bare):
    """Every command of a fold gets the fold's data set, and no other features or annotations."""
    wanted = (*FOLD, "results/proposals/mtn-fold1/detections.json")
    status, text = bare.dry_run("--printshellcmds", *wanted, config=CONFIG)
    assert status == 0, text
    found = r"(?:actionspan|--then) (\w+ [\w-]+) (.*?)(?= --then|$)"
    commands = dict(re.findall(found, text, re.MULTILINE))
    for step in (
        *("features rescale", "temporal train", "temporal predict", "proposals train"),
        *("proposals classifier", "proposals generate", "proposals detections"),
    ):
        tables = (
            r"results/\S*(?:annotations\.json|videos\.tsv|features\.h5|classifier\.safetensors)"
        )
        files = re.findall(tables, commands[step])
        assert files, step
        assert all("/folds/1/" in file for file in files), commands[step]


def test_a_plain_run_has_the_folds_and_without_them_is_as_before(bare):
    off = {**EXTERNAL, "evaluation": {**TESTED, "folds": 0}}
    plain, folds, both = (
        Counter(bare.planned(*words, config=config))
        for words, config in (((), off), (("folds",), CONFIG), ((), CONFIG))
    )
    # the list of training videos is needed by both
    shared = Counter(dataset_index=1, dataset_subset=1, features_external=1, folds=1)
    assert not set(plain) & {"dataset_folds", "evaluation_pool"}
    assert both == plain + folds - shared
    # k trainings of each model; a join and a record of each method
    assert (folds["dataset_folds"], folds["features_rescale"], folds["temporal_train"]) == (2, 2, 2)
    assert (folds["evaluation_baseline"], folds["evaluation_pool"]) == (2 * 2, 3)


@pytest.fixture(scope="module")
def project(bare):
    bare.make(config=CONFIG)
    return bare


def test_the_tables_are_of_testing_and_of_each_training_video_once(project):
    def read(name):
        return json.loads(project.text(f"results/{name}"))

    for table, subset, videos in (("", "testing", 2), ("folds/", "training", 5)):
        assert list(read(f"evaluation/{table}summary.json")) == ["mtn", "random", "sliding"]
        caption = project.text(f"results/evaluation/{table}summary.md").splitlines()[0]
        assert f"subset {subset}: {videos} videos" in caption
        assert ("each held out in one of 2 folds" in caption) == bool(table)
    parts = fold_parts(TRAINING, 2)
    for method in ("mtn", "random", "sliding"):
        record = read(f"evaluation/{method}-folds.json")
        assert (record["method"], record["subset"], record["folds"]) == (method, "training", 2)
        assert record["videos"] == len(TRAINING)
        joined = read(f"proposals/{method}-folds/proposals.json")["results"]
        assert sorted(joined) == TRAINING
        for number, part in enumerate(parts, start=1):
            own = read(f"proposals/{method}-fold{number}/proposals.json")["results"]
            assert not set(own) & {"w0", "x0", "x1"}
            assert {name: joined[name] for name in part} == {name: own[name] for name in part}
    with (project.folder / "results/evaluation/videos/mtn-folds.tsv").open() as file:
        assert sorted(row["video_id"] for row in csv.DictReader(file, delimiter="\t")) == TRAINING
    assert project.planned(config=CONFIG) == {}
    # whatever can be asked of a method can be asked of a fold and of all of them
    wanted = [
        f"results/evaluation/{folder}/mtn-{name}.md"
        for folder in ("misses", "reliability", "videos")
        for name in ("folds", "fold2")
    ]
    project.make(*wanted, config=CONFIG)


def test_a_fold_learns_nothing_from_the_videos_it_holds_out(project):
    held_out, kept = fold_parts(TRAINING, 2)
    before = weights(project)
    write_features(project.folder, *held_out, "w0", "x0", "x1")
    done = project.make(*FOLD, config=CONFIG)
    assert "temporal_train" in done.stderr, "the network was trained again"
    after = weights(project)
    assert all(torch.equal(before[name], after[name]) for name in before)
    write_features(project.folder, kept[0])
    project.make(*FOLD, config=CONFIG)
    after = weights(project)
    assert not all(torch.equal(before[name], after[name]) for name in before)
