"""The Python that jobs start is the one that runs Snakemake, whatever PATH names first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# what Snakemake does, then what a job does
CODE = """
import subprocess
from actionspan.workflow.jobs import start_this_python
start_this_python()
start_this_python()  # a job's own Snakemake does it once more
job = "import os, sys; print(sys.prefix, os.environ['PATH'])"
subprocess.run(["python", "-c", job], check=True)
"""


@pytest.fixture
def venv(tmp_path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "own"], check=True)
    return tmp_path / "own"


@pytest.fixture
def other(tmp_path) -> Path:
    """An environment of the same Python, as both of a user's mostly are."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    return tmp_path / "other/bin"


def jobs_of(python: Path, path: str, folder: Path) -> tuple[str, list[str]]:
    """Return the environment of a job's `python`, and the folders of its PATH."""
    done = subprocess.run(
        [python, "-c", CODE],
        cwd=folder,
        env={"PATH": path, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    prefix, _, folders = done.stdout.strip().partition(" ")
    return prefix, folders.split(os.pathsep)


def test_an_activated_environment_stays_as_it_is(venv, other, tmp_path):
    path = f"/opt/mpi/bin:{venv}/bin:{other}:/usr/bin"
    assert jobs_of(venv / "bin/python3", path, tmp_path) == (str(venv), path.split(":"))


def test_a_python_of_another_environment_is_not_started(venv, other, tmp_path):
    path = f"{other}:/usr/bin"
    prefix, folders = jobs_of(venv / "bin/python", path, tmp_path)
    assert (prefix, folders) == (str(venv), [f"{venv}/bin", *path.split(":")])


def test_a_python_that_has_another_name_alone(venv, other, tmp_path):
    """Debian has python3 without python; a link from another folder would leave the venv."""
    named = venv / "bin/an own python"
    named.symlink_to((venv / "bin/python").resolve())
    for link in venv.glob("bin/python*"):
        link.unlink()
    prefix, folders = jobs_of(named, f"{other}:/usr/bin", tmp_path)
    assert prefix == str(venv)
    assert folders[1:] == [f"{venv}/bin", str(other), "/usr/bin"]
