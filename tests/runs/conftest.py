"""A whole run of the workflow on a tiny data set, made once for all tests of this folder."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from worlds.warm import python

ROOT = Path(__file__).parents[2]

TINY = {
    "demo": {"videos": 6, "shortest_seconds": 5.0, "longest_seconds": 6.0},
    "dataset": {"videos_per_shard": 3},
    "video": {"frames": {"short_side": 128}, "flow": {"preset": "ultrafast"}},
    "features": {"encoders": {"input_size": 64, "runtime": "eager"}, "rescale": {"components": 8}},
    "temporal": {"models": ["origin", "span", "mtn"], "training": {"epochs": 2, "hidden": 32}},
    "proposals": {"evaluator": {"epochs": 2}, "density": {"epochs": 2}},
    "evaluation": {"timelines": 1, "baselines": ["random", "sliding", "difference", "tag"]},
}


@dataclass(frozen=True)
class Project:
    """A copy of the program with a configuration of its own, and its `results/` folder."""

    folder: Path

    def snakemake(self, *words: str, config: dict | None = None) -> subprocess.CompletedProcess:
        """Run Snakemake as a person does."""
        return self._call(words, config, stderr=subprocess.PIPE)

    def dry_run(self, *words: str, config: dict | None = None) -> tuple[int, str]:
        """Return the exit status and all that a dry run prints."""
        done = self._call(("--dry-run", *words), config, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def _call(
        self, words: Sequence[str], config: dict | None, stderr: int
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            [python(), "-m", "snakemake", *self._arguments(words, config)],
            cwd=self.folder,
            env={**_environment(), "PYTHONPATH": str(self.folder / "src")},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=900,
        )

    def _arguments(self, words: Sequence[str], config: dict | None) -> list[str]:
        (self.folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
        files = ["tiny.yaml"]
        if config is not None:
            (self.folder / "more.yaml").write_text(yaml.safe_dump(config))
            files.append("more.yaml")
        return ["--cores", "2", *words, "--configfile", *files]

    def planned(self, *words: str, config: dict | None = None) -> dict[str, int]:
        """Return how often each rule would run."""
        status, text = self.dry_run(*words, config=config)
        assert status == 0, text
        if "Nothing to be done" in text:
            return {}
        table = re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)
        return {rule: int(count) for rule, count in table if rule not in ("all", "total")}

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


def _environment() -> dict[str, str]:
    own = map(str, (Path(python()).parent, Path(sys.executable).parent))
    return {**os.environ, "PATH": os.pathsep.join([*own, os.environ["PATH"]])}


def copy_program(folder: Path) -> Project:
    for name in ("Snakefile", "config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("workflow", "profiles", "src", "envs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Project(folder)


@pytest.fixture(scope="session")
def project(tmp_path_factory) -> Project:
    """The tiny project after one whole run; tests must leave it as they found it.

    Of several processes of tests, the first that asks for it makes it, and others copy that.
    """
    folder, base = tmp_path_factory.mktemp("project"), tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return _run(copy_program(folder))
    first = base.parent / "whole_run"
    with FileLock(first.with_suffix(".lock")):
        if not first.exists():
            done = base / "done"
            shutil.copytree(_run(copy_program(folder)).folder, done, symlinks=True)
            done.rename(first)
            return Project(folder)
    shutil.copytree(first, folder, symlinks=True, dirs_exist_ok=True)
    return Project(folder)


def _run(made: Project) -> Project:
    done = made.snakemake("--show-failed-logs")
    assert done.returncode == 0, done.stdout + done.stderr
    return made
