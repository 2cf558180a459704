"""Which files of the package a step's behaviour depends on, found without importing anything.

Snakemake does not see a change inside an imported module. As inputs of a rule these files make a
change re-run exactly the rules whose code it touches.
"""

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from actionspan.cli import step_module

PACKAGE_FOLDER = Path(__file__).parents[1]
_MODULE_NAME = re.compile(r"actionspan(\.\w+)+")


def step(words: str) -> list[str]:
    """Return the files of a step of the command line and of all they import inside the package.

    Args:
        words: What follows `actionspan` on the command line, e.g. `"video flow"`.

    Returns:
        Paths relative to the working directory, sorted.

    Raises:
        ValueError: There is no such step.
    """
    return source_files(step_module(words))


def source_files(module: str) -> list[str]:
    """Return the files of a module and of all it imports inside the package.

    Args:
        module: Its name in full, e.g. `"actionspan.video.optical_flow"`.

    Returns:
        Paths relative to the working directory, sorted.
    """
    paths: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _module_path(name)
        if name not in paths and path is not None:
            paths[name] = path
            waiting += _imported(path)
    assert module in paths, f"no such module: {module}"
    return sorted(os.path.relpath(path) for path in paths.values())


def _module_path(module: str) -> Path | None:
    base = PACKAGE_FOLDER.parent / module.replace(".", "/")
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache  # the import graph is read once, whatever the number of rules
def _imported(path: Path) -> tuple[str, ...]:
    return tuple(_names(ast.parse(path.read_text(encoding="utf-8"))))


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the names a file imports from the package, at its top, in functions or by text."""
    package = PACKAGE_FOLDER.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == package)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
            yield str(node.module)
            # in `from package import name` the name may itself be a module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # what is imported by name: `import_module("actionspan.…")`
            if _MODULE_NAME.fullmatch(node.value):
                yield node.value
