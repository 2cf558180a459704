"""Snakemake's answer to a mistake: one line, and no traceback.

`tests/workflow/test_mistakes.py` has the lines for other targets and files.
"""

import pytest
import yaml

from runs.conftest import ROOT, copy_program
from tiers import first_tier

pytestmark = pytest.mark.workflow

PAPERS = yaml.safe_load((ROOT / "examples/papers.yaml").read_text())
OFF = "evaluation.folds: cross-validation is off; give a number: --config evaluation='{folds: 5}'"
LISTED = "docs/outputs.md lists the files that can be asked for"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return copy_program(tmp_path_factory.mktemp("bare"))


def mistake(project, *words, config=None) -> str:
    """Return the only line that follows Snakemake's own about its progress."""
    status, text = project.dry_run(*words, config=config)
    assert status == 1, text
    assert "Traceback" not in text
    assert "Exception" not in text
    *_, before, line = text.splitlines()
    assert before == "Building DAG of jobs...", text
    return line.removeprefix("Error: ")


TARGETS = [
    ("folds", OFF),
    ("results/evaluation/folds/summary.json", OFF),
    (
        "results/evaluaton/summary.json",
        "results/evaluaton/summary.json: nothing makes it with this configuration; "
        "did you mean results/evaluation/summary.json?",
    ),
    (
        "temporal_train",
        f"this rule makes a file for each of many things: name the file; {LISTED}",
    ),
]
FILES = [
    (
        {**PAPERS, "evaluation": {"baselines": ["random"]}},
        "recognition.flow.weights: bn_inception.pth: no such file; give a checkpoint, or null "
        "next to pretrained: false to train from scratch",
    ),
    ({"dataset": {"video_info": "info.csv"}}, "dataset.video_info: info.csv: no such file"),
]


@pytest.mark.parametrize(("target", "line"), first_tier(TARGETS, TARGETS[0], *TARGETS[2:]))
def test_a_target_that_the_configuration_does_not_have(bare, target, line):
    assert mistake(bare, target) == line


@pytest.mark.parametrize(("config", "line"), first_tier(FILES, FILES[0]))
def test_a_file_of_the_configuration_that_is_not_there(bare, config, line):
    assert mistake(bare, config=config) == line


def test_a_mistake_of_the_command_line_is_one_line(bare):
    status, text = bare.dry_run("--config", "evaluation={folds: five}")
    assert status == 1
    line = "--config: evaluation.folds 'five': a whole number from 0 to 1000"
    assert text.splitlines()[-1] == line
    assert "Traceback" not in text
