"""The files of ours and of plug-ins that a step depends on, found without importing anything.

Snakemake does not see changes inside imported modules. As inputs of a rule these files make a
change re-run exactly the rules whose code it touches.
"""

import ast
import os
import re
from functools import cache
from pathlib import Path

from actionspan.plan.steps import file_of, step_module
from actionspan.plugins import plugins

_QUOTED_MODULE = re.compile(r"""["'](actionspan\w*(?:\.\w+)+)["']""")
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def step(words: str) -> list[str]:
    """Return the source files of a step of the command line, e.g. `"video flow"`.

    Raises:
        ValueError: There is no such step.
    """
    return source_files(step_module(words))


def shard_step(words: str) -> str:
    """Return the file that stands for the source files of a step that runs once a shard.

    The rule `code` makes it. Snakemake takes milliseconds for each input of each job, so that a
    list of files for each of thousands of shards would be most of the time that planning takes.
    """
    return f"results/code/{words.replace(' ', '_')}.txt"


def source_files(module: str) -> list[str]:
    """Return the files of a module and of all it imports from the package and from plug-ins.

    They are sorted, and relative to the working directory.
    """
    paths: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if name not in paths and path.is_file():
            paths[name] = path
            waiting += [each for each in _imported(path) if each not in paths]
    assert module in paths, f"no such module: {module}"
    return sorted(os.path.relpath(path) for path in paths.values())


@cache  # the import graph is read once, whatever the number of rules
def _imported(path: Path) -> tuple[str, ...]:
    """Return the names a file imports from the package, at its top, in functions or by text."""
    text = path.read_text(encoding="utf-8")
    # modules imported by name: `import_module("actionspan.…")`
    names = _QUOTED_MODULE.findall(text)
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:  # statements only: expressions import nothing and are most of a file
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # in `from package import name` the name may itself be a module
            inner = [f"{node.module}.{name.name}" for name in node.names]
            names += [name if file_of(name).is_file() else node.module for name in inner]
        for block in _BLOCKS:
            waiting += getattr(node, block, [])
    ours = _packages()
    return tuple(name for name in names if name.split(".")[0] in ours)


@cache
def _packages() -> set[str]:
    """Return the package and those of plug-ins of steps."""
    return {"actionspan", *(point.value.split(".")[0] for point in plugins("steps").values())}
