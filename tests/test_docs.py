"""The docs name what exists: public names where they are defined, and steps of the command line."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from actionspan.workflow.steps import STAGES, step_module

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
    for words in steps:
        assert step_module(words).startswith("actionspan")


def said(source: str) -> list[str]:
    """Return the strings of a module, `…` where a value is filled in."""

    def text(node: ast.expr) -> str:
        if isinstance(node, ast.JoinedStr):
            return "".join(map(text, node.values))
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "…"

    nodes = ast.walk(ast.parse(source))
    return [text(node) for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant)]


def test_the_messages_that_are_explained_are_those_of_the_program():
    root = PAGES.parents[1]
    known = [(root / "Makefile").read_text()]
    for path in (root / "src").rglob("*.py"):
        known += said(path.read_text())
    page = (root / "docs" / "troubleshooting.md").read_text()
    messages = re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE)
    assert len(messages) > 20
    for message in messages:
        # a value may be longer than `…` says
        parts = [part for part in re.split(r"…", message) if part.strip(" ()`;,:?")]
        pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
        assert any(pattern.search(text.replace("`", "")) for text in known), message
