"""The steps of the command line by name: `actionspan video flow` is actionspan/video/flow.py.

Plug-ins add to them (entry points `actionspan.steps`): a package is a stage, a module a command,
and a module called `stage.step` a step of a stage.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from actionspan.plugins import plugins

PACKAGE_FOLDER = Path(__file__).parents[1]
STAGES = (
    "dataset video recognition features temporal proposals evaluation report scaling finetune"
).split()
# Commands of one word, for work outside the workflow.
SHORT = {
    "propose": "actionspan.propose.command",
    "stream": "actionspan.live.command",
    "score": "actionspan.evaluation.score",
    "init": "actionspan.plan.init",
    "run": "actionspan.plan.run",
    "config": "actionspan.plan.config",
    "schema": "actionspan.plan.schema",
    "fit-timing": "actionspan.scaling.fit_timing",
}
# As the help lists them.
GROUPS = {
    "Use": ("propose", "stream", "score"),
    "Train": ("init", "run", "config"),
    "Stages of a run": STAGES,
    "Tools": ("schema", "fit-timing"),
}
# A step is a module with this function, defined or assigned.
_FLAGS = re.compile(r"^(?:def )?add_arguments\b", re.MULTILINE)
OURS = {stage: f"actionspan.{stage}" for stage in STAGES} | SHORT


@cache
def commands() -> Mapping[str, str]:
    """Return {word: module} of the stages and commands, ours and those of plug-ins."""
    added = {name: point.value for name, point in plugins("steps").items() if "." not in name}
    return added | OURS


def step_module(words: str) -> str:
    """Return the module of a step: actionspan.video.flow for "video flow".

    Raises:
        ValueError: There is no such step.
    """
    first, *rest = words.split() or [""]
    module = OURS.get(first) or commands().get(first, f"actionspan.{first}")
    module = ".".join([module, *rest]).replace("-", "_")
    if not _is_step(file_of(module)):
        module = steps_of(module.rpartition(".")[0]).get(rest[-1], module) if rest else module
    if not _is_step(file_of(module)):
        raise ValueError(f"no step {words!r}: {module} has no add_arguments")
    return module


def steps_of(package: str) -> dict[str, str]:
    """Return {word: module} of the steps of a stage, and of the stages inside it."""
    if file_of(package).name != "__init__.py":
        return {}
    folder = file_of(package).parent
    inner = [path for path in folder.glob("*/__init__.py") if steps_of(f"{package}.{_stem(path)}")]
    steps = [path for path in folder.glob("*.py") if _is_step(path)]
    words = {
        _stem(path).replace("_", "-"): f"{package}.{_stem(path)}" for path in sorted(inner + steps)
    }
    stage, inside = package.rpartition(".")[2], package.startswith("actionspan.")
    added = plugins("steps").items() if inside and stage in STAGES else ()
    return words | {
        name.partition(".")[2]: point.value for name, point in added if name.startswith(f"{stage}.")
    }


def file_of(module: str) -> Path:
    """Return the file of a module or package of ours or of a plug-in, even if it is not there."""
    package = module.split(".")[0]
    folder = PACKAGE_FOLDER.parent if package == PACKAGE_FOLDER.name else _folder_of(package)
    base = folder / module.replace(".", "/")
    inside = base / "__init__.py"
    return inside if inside.is_file() else base.with_suffix(".py")


@cache
def _folder_of(package: str) -> Path:
    """Return the folder that a plug-in's package or module lies in, without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return PACKAGE_FOLDER.parent
    return Path(spec.origin).parents[1 if spec.submodule_search_locations else 0]


def _stem(path: Path) -> str:
    return path.parent.name if path.name == "__init__.py" else path.stem


def _is_step(path: Path) -> bool:
    return path.is_file() and _FLAGS.search(path.read_text(encoding="utf-8")) is not None


def summary_of(path: Path) -> str:
    """Return the first line of a module's docstring without importing the module."""
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').rstrip(".")
