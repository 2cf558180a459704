"""Snakemake's answer to a mistake: one line, and no traceback.

`tests/workflow/test_mistakes.py` has the lines for other targets and files.
"""

import pytest
import yaml

from runs.conftest import ROOT

pytestmark = pytest.mark.workflow

PAPERS = yaml.safe_load((ROOT / "examples/papers.yaml").read_text())
OFF = "evaluation.folds: cross-validation is off; give a number: --config evaluation='{folds: 5}'"
LISTED = "docs/outputs.md lists the files that can be asked for"


def mistake(project, *words, config=None) -> str:
    """Return the only line that follows Snakemake's own about its progress."""
    status, text = project.dry_run(*words, config=config)
    assert status == 1, text
    assert "Traceback" not in text
    assert "Exception" not in text
    *_, before, line = text.splitlines()
    assert before == "Building DAG of jobs...", text
    return line.removeprefix("Error: ")


FEW = {**PAPERS, "evaluation": {"baselines": ["random"]}}


@pytest.mark.parametrize(
    ("words", "config", "line"),
    [
        (["folds"], None, OFF),
        (
            ["results/evaluaton/summary.json"],
            None,
            "results/evaluaton/summary.json: nothing makes it with this configuration; "
            "did you mean results/evaluation/summary.json?",
        ),
        (
            ["temporal_train"],
            None,
            f"this rule makes a file for each of many things: name the file; {LISTED}",
        ),
        (
            [],
            FEW,
            "recognition.flow.weights: bn_inception.pth: no such file; give a checkpoint, or null "
            "next to pretrained: false to train from scratch",
        ),
    ],
)
def test_a_target_or_a_file_that_is_not_there_is_one_line(bare, words, config, line):
    assert mistake(bare, *words, config=config) == line


def test_a_mistake_of_the_command_line_is_one_line(bare):
    status, text = bare.dry_run("--config", "evaluation={folds: five}")
    assert status == 1
    line = "--config: evaluation.folds 'five': a whole number from 0 to 1000"
    assert text.splitlines()[-1] == line
    assert "Traceback" not in text
