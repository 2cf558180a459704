"""Which files of the package a module's behaviour depends on, found without importing anything."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

PACKAGE_FOLDER = Path(__file__).parents[1]


def source_files(*modules: str) -> list[str]:
    """Return the files of these modules and of all they import inside the package.

    Snakemake does not see a change inside an imported module; as inputs of a rule these files make
    a change re-run exactly the rules whose code it touches.

    Args:
        modules: Full names, e.g. `"actionspan.video.optical_flow"`.

    Returns:
        Paths relative to the working directory, sorted.
    """
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = _module_path(module)
        if module in found or path is None:
            continue
        found[module] = os.path.relpath(path)
        waiting += _imported(path)
    assert set(modules) <= set(found), f"no such module among {modules}"
    return sorted(found.values())


def _module_path(module: str) -> Path | None:
    base = PACKAGE_FOLDER.parent / module.replace(".", "/")
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _imported(path: Path) -> Iterator[str]:
    """Yield the names a file imports from the package, at its top or inside functions."""
    package = PACKAGE_FOLDER.name
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == package)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
            yield str(node.module)
            # in `from package import name` the name may itself be a module
            yield from (f"{node.module}.{name.name}" for name in node.names)
