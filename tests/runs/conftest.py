"""A whole run of the workflow on a tiny data set, made once for all tests of this folder."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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


EXTERNAL = {
    "dataset": {"videos": None, "annotations": "truth.json"},
    "features": {"source": "external", "external": {"folder": "npy"}},
    "temporal": {"models": ["mtn"]},
}


@dataclass(frozen=True)
class Project:
    """A copy of the program with a configuration of its own, and its `results/` folder."""

    folder: Path

    def snakemake(self, *words: str, config: dict | None = None) -> subprocess.CompletedProcess:
        """Run Snakemake as a person does."""
        return self._call(words, config, stderr=subprocess.PIPE)

    def make(self, *words: str, config: dict | None = None) -> subprocess.CompletedProcess:
        done = self.snakemake("--show-failed-logs", *words, config=config)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def dry_run(self, *words: str, config: dict | None = None) -> tuple[int, str]:
        done = self._call(("--dry-run", *words), config, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def _call(
        self, words: Sequence[str], config: dict | None, stderr: int
    ) -> subprocess.CompletedProcess:
        own = str(self.folder / "src")
        given = self._arguments(words, config)
        return snakemake(self.folder, *given, stderr=stderr, PYTHONPATH=own)

    def _arguments(self, words: Sequence[str], config: dict | None) -> list[str]:
        (self.folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
        files = ["tiny.yaml"]
        if config is not None:
            (self.folder / "more.yaml").write_text(yaml.safe_dump(config))
            files.append("more.yaml")
        return ["--cores", "2", *words, "--configfile", *files]

    def planned(self, *words: str, config: dict | None = None) -> dict[str, int]:
        status, text = self.dry_run(*words, config=config)
        assert status == 0, text
        if "Nothing to be done" in text:
            return {}
        return {rule: n for rule, n in jobs_of(text).items() if rule not in ("all", "total")}

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


def snakemake(
    folder: Path, *words: str, stderr: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess:
    """Run Snakemake in any folder, and with it the commands of this environment."""
    own = map(str, (Path(python()).parent, Path(sys.executable).parent))
    path = os.pathsep.join([*own, os.environ["PATH"]])
    return subprocess.run(
        [python(), "-m", "snakemake", *map(str, words)],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        timeout=900,
    )


def jobs_of(text: str) -> dict[str, int]:
    return {name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)}


def copy_program(folder: Path) -> Project:
    for name in ("Snakefile", "config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("workflow", "profiles", "src", "envs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Project(folder)


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Project:
    """The program and nothing else."""
    return copy_program(tmp_path_factory.mktemp("bare"))


def write_features(folder: Path, *names: str) -> None:
    """Write random features of some videos; they differ from call to call."""
    for name in names:
        rows = np.random.default_rng().normal(size=(30, 12)).astype(np.float32)
        np.save(folder / f"npy/{name}.npy", rows)


def write_external(folder: Path, subsets: dict[str, str]) -> None:
    """Write the features and annotations of videos to which EXTERNAL leads."""
    (folder / "npy").mkdir()
    write_features(folder, *subsets)
    database = {}
    for place, (name, subset) in enumerate(subsets.items()):
        own = [{"segment": [4.0 + place, 12.0], "label": "jump"}]
        database[name] = {"subset": subset, "duration": 20.0, "annotations": own}
    (folder / "truth.json").write_text(json.dumps({"database": database}))


@pytest.fixture(scope="session")
def project(tmp_path_factory) -> Project:
    """The tiny project after one whole run; tests must leave it as they found it.

    Of several processes of tests, the first that asks for it makes it, and others copy that.
    """
    folder, base = tmp_path_factory.mktemp("project"), tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        made = copy_program(folder)
        made.make()
        return made
    first = base.parent / "whole_run"
    with FileLock(first.with_suffix(".lock")):
        if not first.exists():
            made, done = copy_program(folder), base / "done"
            made.make()
            shutil.copytree(folder, done, symlinks=True)
            done.rename(first)
            return made
    shutil.copytree(first, folder, symlinks=True, dirs_exist_ok=True)
    return Project(folder)
