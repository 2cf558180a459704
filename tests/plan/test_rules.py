"""The rules of the workflow: none can be stale, and each is where its name says."""

import os
import re
from pathlib import Path

import pytest

from actionspan.cli import step_module
from actionspan.plan import code
from actionspan.plan.code import step

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"-m actionspan ((?:papers )?[a-z-]+ [a-z-]+|[a-z-]+ [a-z-]+)")
STEP = re.compile(r'step\("([^"]+)"\)')
RULE = re.compile(r"^ *(use )?rule (\w+)(?: as (\w+) with)?:", re.MULTILINE)
TARGETS = {"all", "tables", "analysis", "recognition_figures"}  # rules without a command


def rules() -> dict[str, tuple[str, str]]:
    """Return {rule: (its file, its text)}."""
    every = {}
    for path in sorted(ROOT.glob("workflow/rules/*.smk")):
        text = path.read_text()
        heads = [*RULE.finditer(text)]
        ends = [*[head.start() for head in heads[1:]], len(text)][: len(heads)]
        for head, end in zip(heads, ends, strict=True):
            every[head[3] or head[2]] = path.stem, text[head.start() : end]
    return every


RULES = rules()
STEPS = sorted({STEP.search(text)[1] for _, text in RULES.values() if STEP.search(text)})


@pytest.mark.parametrize("name", sorted(set(RULES) - TARGETS))
def test_the_code_of_a_rule_is_that_of_its_command(name):
    _, text = RULES[name]
    if text.lstrip().startswith("use rule"):
        assert "shell:" not in text
        assert "code=" not in text
        return
    assert STEP.findall(text) == COMMAND.findall(text)
    assert len(STEP.findall(text)) == 1


def test_every_rule_is_here():
    assert len(RULES) > 30
    assert len(STEPS) > 25


@pytest.mark.parametrize("words", STEPS)
def test_a_step_has_its_own_module_and_all_it_imports(words):
    """Whatever of the package is imported on the way is among the inputs of the rule."""
    files = set(step(words))
    module = step_module(words)
    own = ROOT / "src" / f"{module.replace('.', '/')}.py"
    assert os.path.relpath(own) in files
    for path in files:
        for name in code._imported(Path(path).resolve()):
            inner = code._module_path(name)
            assert inner is None or os.path.relpath(inner) in files
