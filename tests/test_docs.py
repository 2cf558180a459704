"""The docs name what exists: public names where they are defined, and steps of the command line."""

import importlib
import re
from pathlib import Path

import pytest

from actionspan.plan.steps import STAGES, step_module

PAGES = Path(__file__).parents[1] / "docs" / "api"


@pytest.mark.parametrize("page", sorted(PAGES.glob("[!i]*.md")), ids=lambda page: page.stem)
def test_a_page_has_all_public_names_of_its_package(page):
    package = importlib.import_module(f"actionspan.{page.stem}")
    documented = {}
    for module, name in re.findall(r"^::: ([\w.]+)\.(\w+)$", page.read_text(), re.MULTILINE):
        documented[name] = getattr(importlib.import_module(module), name)
    assert documented == {name: getattr(package, name) for name in package.__all__}


def test_every_package_with_public_names_has_a_page():
    source = PAGES.parents[1] / "src" / "actionspan"
    packages = {
        path.parent.name for path in source.glob("*/__init__.py") if "__all__" in path.read_text()
    }
    assert packages == {page.stem for page in PAGES.glob("[!i]*.md")}


def test_the_steps_that_write_the_outputs_exist():
    text = (PAGES.parent / "outputs.md").read_text()
    steps = re.findall(rf"`actionspan ((?:{'|'.join(STAGES)}) [a-z0-9 -]+)`", text)
    assert len(steps) > 25
    steps = [words for words in steps if not words.startswith("papers")]
    for words in steps:
        assert step_module(words).startswith("actionspan.")
