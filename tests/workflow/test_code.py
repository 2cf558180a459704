"""The files that a rule's code depends on: all of them, and none of anybody else's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actionspan.workflow import steps
from actionspan.workflow.steps import source_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package of its own name, `actionspan`, in place of the real one."""
    files = {
        "__init__.py": "",
        "top.py": "import numpy\nfrom actionspan.near import thing\n",
        "near.py": "def f():\n    if True:\n        import actionspan.stage.far\n",
        "stage/__init__.py": "from actionspan.stage.settings import KNOB\n",
        "stage/far.py": "from actionspan import other\nfrom actionspan.stage import deep as d\n",
        "stage/deep.py": "import json, actionspan.top as t\n",
        "stage/settings.py": "",
        "other.py": "from actionspan_plugin import x\nimport actionspanner\nimport torch.nn\n",
        "unused.py": "import actionspan.top\n",
        "user.py": "from actionspan.stage import KNOB\n",
        "lazy.py": 'MODULES = {"x": "actionspan.stage.settings", "y": "actionspan.missing"}\n',
    }
    for name, text in files.items():
        (tmp_path / "src/actionspan" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src/actionspan" / name).write_text(text)
    # neighbours in the same folder, as in site-packages
    (tmp_path / "src/numpy.py").write_text("")
    (tmp_path / "src/actionspan_plugin.py").write_text("")
    (tmp_path / "src/actionspanner.py").write_text("")
    monkeypatch.setattr(steps, "PACKAGE_FOLDER", tmp_path / "src/actionspan")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(module: str) -> list[str]:
    return sorted(os.path.relpath(file, steps.PACKAGE_FOLDER) for file in source_files(module))


@pytest.mark.parametrize(
    ("module", "files"),
    [
        # at the top, inside functions and in circles
        ("top", "near.py other.py stage/deep.py stage/far.py top.py"),
        ("stage.settings", "stage/settings.py"),
        ("other", "other.py"),  # no other package, even of a longer name
        ("user", "stage/__init__.py stage/settings.py user.py"),  # for a name of its own
        ("lazy", "lazy.py stage/settings.py"),  # by the name in a text
    ],
)
def test_imports_are_followed(package, module, files):
    assert found(f"actionspan.{module}") == files.split()


# Statements of an importing module, and the modules of `package` that they bring.
STATEMENTS = {
    "from actionspan.stage import (\n    far as f,  # a note\n    deep,\n)": {"deep", "far"},
    "from actionspan.stage import (\n    far,  # one (old)\n    deep,\n)": {"far", "deep"},
    "from actionspan.stage \\\n    import far, \\\n    deep": {"far", "deep"},
    "import json, \\\n    actionspan.unused": {"unused"},
    "from actionspan.stage import far; import actionspan.unused": {"far", "unused"},
    "if True: import actionspan.unused as other": {"unused"},
    "try:\n\timport actionspan.unused\nexcept E:\n\timport actionspan.other": {"unused", "other"},
    "import json  # actionspan.unused": set(),
    "# import actionspan.unused": set(),
    "important = actionspan.unused": set(),
    "from json import loads, actionspan": set(),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_imports_are_found_however_they_are_written(package, statement):
    user = package / "src/actionspan/user.py"
    user.write_text(f"x = 1\n{statement}\n")
    assert {Path(file).stem for file in steps._imported(str(user))} == STATEMENTS[statement]


def test_a_module_that_does_not_exist_is_an_error(package):
    with pytest.raises(AssertionError, match="no such module"):
        source_files("actionspan.missing")


def test_the_digest_of_a_step_is_of_the_content_of_its_files(package):
    def digest():
        steps._digest.cache_clear()  # as in another run
        return steps.step("top")

    top, deep = (package / "src/actionspan" / name for name in ("top.py", "stage/deep.py"))
    top.write_text(f"{top.read_text()}add_arguments = None\n")
    before = digest()
    os.utime(deep)
    (package / "src/actionspan/unused.py").write_text("x = 1\n")
    assert digest() == before
    deep.write_text(f"{deep.read_text()}x = 1\n")
    assert digest() != before


def test_planning_imports_nothing_that_only_jobs_need():
    """Each job of a cluster plans first: torch would cost it seconds and half a gigabyte."""
    script = (
        "import sys; from actionspan.dataset import sharding\n"
        "from actionspan.workflow.steps import source_files\n"
        "source_files('actionspan.propose.command')\n"
        "heavy = {'torch', 'cv2', 'scipy'}; found = (heavy | {'numpy', 'h5py'}) & {*sys.modules}\n"
        "from actionspan.workflow.plan import Plan\n"
        "from actionspan.workflow.sections import defaults\n"
        "found |= heavy & {*sys.modules}\n"
        "Plan(defaults(), 'config.yaml')\n"
        "print(found, 'torch' in sys.modules)"
    )
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set() False\n"
