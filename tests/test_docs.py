"""The pages of the Python interface name every public name, where it is defined."""

import importlib
import re
from pathlib import Path

import pytest

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
