"""The product without the papers' wing: everything that a user does works."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# An installed wing is not seen: a finder before all others says that it is not there.
SITE = """
import importlib.util
import sys

original = importlib.util.find_spec


def find_spec(name, package=None):
    return None if name.split(".")[0] == "actionspan_papers" else original(name, package)


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "actionspan_papers":
            raise ModuleNotFoundError(name)


importlib.util.find_spec = find_spec
sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """A checkout without src/actionspan_papers, which Python does not find elsewhere either."""
    root = tmp_path_factory.mktemp("alone")
    for name in ("Snakefile", "config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    for name in ("workflow", "envs"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copytree(ROOT / "src/actionspan", root / "src/actionspan")
    (root / "src/sitecustomize.py").write_text(SITE)
    return root


def run(root: Path, *words: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run([sys.executable, "-m", *words], cwd=root, env=environment, **how)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["all"], 0, "report_index"),
        (["tables"], 1, "tables"),
        (["all", "--config", "papers={sbp: {seeds: 2}}"], 1, "papers: unknown key"),
    ],
)
def test_a_run_is_planned_without_the_targets_and_keys_of_the_papers(alone, words, status, said):
    done = run(alone, "snakemake", "--cores", "1", "--dry-run", *words)
    assert done.returncode == status, done.stdout
    assert said in done.stdout


def test_the_commands_of_the_papers_are_unknown(alone):
    done = run(alone, "actionspan", "papers", "mtn", "claims")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1].startswith("actionspan: error: no command 'papers'")
    assert "papers" not in run(alone, "actionspan", "--help").stdout.split()
    assert "measure" not in run(alone, "actionspan", "finetune", "--help").stdout.split()
