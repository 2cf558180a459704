"""The steps of the command line by name: `actionspan video flow` is actionspan/video/flow.py."""

from pathlib import Path

PACKAGE_FOLDER = Path(__file__).parents[1]
STAGES = (
    "dataset video recognition features temporal proposals evaluation report scaling finetune"
    " papers"
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


def step_module(words: str) -> str:
    """Return the module of a step: actionspan.video.flow for "video flow".

    Raises:
        ValueError: There is no such step.
    """
    module = SHORT.get(words) or ".".join(["actionspan", *words.replace("-", "_").split()])
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
    return {
        _stem(path).replace("_", "-"): f"{package}.{_stem(path)}" for path in sorted(inner + steps)
    }


def file_of(module: str) -> Path:
    """Return the file of a module or package of ours, whether it exists or not."""
    base = PACKAGE_FOLDER.parent / module.replace(".", "/")
    package = base / "__init__.py"
    return package if package.is_file() else base.with_suffix(".py")


def _stem(path: Path) -> str:
    return path.parent.name if path.name == "__init__.py" else path.stem


def _is_step(path: Path) -> bool:
    return path.is_file() and "\ndef add_arguments(" in path.read_text(encoding="utf-8")


def summary_of(path: Path) -> str:
    """Return the first line of a module's docstring without importing the module."""
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').rstrip(".")
