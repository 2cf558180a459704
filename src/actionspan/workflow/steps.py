"""The steps of the command line by name: `actionspan video flow` is actionspan/video/flow.py.

Plug-ins add to them (entry points `actionspan.steps`): a package is a stage, a module a command,
and a module called `stage.step` a step of a stage.

The files that a step depends on are found without importing anything.
"""

import hashlib
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
    "review": "actionspan.review.command",
    "learn": "actionspan.review.learn",
    "find": "actionspan.find.command",
    "stream": "actionspan.live.command",
    "clips": "actionspan.events.clips",
    "budget": "actionspan.events.budget",
    "frames": "actionspan.events.frames",
    "agree": "actionspan.events.agree",
    "score": "actionspan.evaluation.score",
    "init": "actionspan.workflow.init",
    "run": "actionspan.workflow.run",
    "config": "actionspan.workflow.config",
    "schema": "actionspan.workflow.schema",
    "fit-timing": "actionspan.scaling.fit_timing",
    "convert-model": "actionspan.storage.convert_model",
}
# Steps of evaluation that draw lie next to what draws, in a room above evaluation.
_DRAWN = {
    f"evaluation.{word}": f"actionspan.report.figures.{word}"
    for word in ("curves", "misses", "reliability", "timeline")
}
# As the help lists them.
GROUPS = {
    "Your videos": ("review", "propose", "learn", "find", "stream"),
    "Found events": ("clips", "budget", "frames", "agree", "score"),
    "A run of your own, by Snakemake": ("init", "run", "config"),
    "The stages of a run, one by one": STAGES,
    "Tools": ("schema", "fit-timing", "convert-model"),
}
# A step is a module with this function, defined or assigned.
_FLAGS = re.compile(r"^(?:def )?add_arguments\b", re.MULTILINE)
OURS = {stage: f"actionspan.{stage}" for stage in STAGES} | SHORT


@cache
def commands() -> Mapping[str, str]:
    """Return {word: module} of the stages and commands, ours and the plug-ins'."""
    added = {name: point.value for name, point in plugins("steps").items() if "." not in name}
    return added | OURS


def step_module(words: str) -> str:
    """Return the module of a step: actionspan.video.flow for "video flow".

    Raises:
        ValueError: The step does not exist.
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
    names = (f"{package}.{_stem(path)}" for path in inner + steps)
    modules = [name for name in names if name not in _DRAWN.values()]
    words = {name.rpartition(".")[2].replace("_", "-"): name for name in modules}
    stage = package.removeprefix("actionspan.")
    if stage in STAGES:
        added = _DRAWN | {name: point.value for name, point in plugins("steps").items()}
        its = {name: module for name, module in added.items() if name.startswith(f"{stage}.")}
        words |= {name.partition(".")[2]: module for name, module in its.items()}
    return dict(sorted(words.items()))


def file_of(module: str) -> Path:
    """Return the file of a module or package of ours or of a plug-in, even if it is not there."""
    package = module.split(".")[0]
    folder = PACKAGE_FOLDER.parent if package == PACKAGE_FOLDER.name else _folder_of(package)
    return _file_below(folder, module)


@cache  # asked for each import of each module of each rule
def _file_below(folder: Path, module: str) -> Path:
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


@cache
def summary_of(path: Path) -> str:
    """Return the first line of a module's docstring without importing the module."""
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').rstrip(".")


_QUOTED_MODULE = re.compile(r"""["'](actionspan\w*(?:\.\w+)+)["']""")
# `from MODULE import NAMES` or `import NAMES`, wherever a statement can begin
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?import\b[ \t]*(\([^)]*|[^\n;#]*)", re.MULTILINE
)


def step(*words: str) -> str:
    """Return a digest of the source files of steps, e.g. of `"video flow"`.

    As a parameter it makes a change in the code, which Snakemake does not see, re-run the rule.

    Raises:
        ValueError: A step does not exist.
    """
    files = {file for each in words for file in source_files(step_module(each))}
    return hashlib.sha256(b"".join(sorted(map(_digest, files)))).hexdigest()[:16]


@cache
def _digest(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


def source_files(module: str) -> set[str]:
    """Return the files of a module and of all it imports from the package and from plug-ins."""
    found, waiting = set[str](), [str(file_of(module))]
    assert Path(waiting[0]).is_file(), f"no such module: {module}"
    while waiting:
        if (file := waiting.pop()) not in found:
            found.add(file)
            waiting += _imported(file)
    return found


@cache  # the import graph is read once, whatever the number of rules
def _imported(file: str) -> tuple[str, ...]:
    """Return the files that a file imports from the package, at its top, in functions or by text.

    Statements are found by a pattern: to parse three hundred files takes half a second.
    """
    # continued lines are joined, and comments left out
    text = re.sub(r"\\\n|#.*", " ", Path(file).read_text(encoding="utf-8"))
    # modules imported by name: `import_module("actionspan.…")`
    names = set(_QUOTED_MODULE.findall(text))
    ours = {"actionspan", *(point.value.split(".")[0] for point in plugins("steps").values())}
    for module, listed in _IMPORT.findall(text):
        words = [each.split() for each in listed.strip("()").split(",")]
        inner = [".".join(filter(None, (module, word[0]))) for word in words if word]
        for name in inner if not module or module.split(".")[0] in ours else ():
            # in `from package import name` the name may itself be a module
            names.add(name if not module or file_of(name).is_file() else module)
    paths = [file_of(name) for name in names if name.split(".")[0] in ours]
    return tuple(str(path) for path in paths if path.is_file())
