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


@pytest.fixture(scope="module")
def environments(tmp_path_factory) -> tuple[Path, Path]:
    """Two environments of the same Python, as a user's mostly are."""
    folder = tmp_path_factory.mktemp("environments")
    both = folder / "own", folder / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", *both], check=True)
    return both


def jobs_of(python: Path, path: str) -> tuple[str, list[str]]:
    done = subprocess.run(
        [python, "-c", CODE],
        cwd=python.parent,
        env={"PATH": path, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    prefix, _, folders = done.stdout.strip().partition(" ")
    return prefix, folders.split(os.pathsep)


@pytest.mark.parametrize("activated", [True, False])
def test_jobs_start_the_python_of_the_run(environments, activated):
    own, other = environments
    path = [f"{own}/bin"] * activated + [f"{other}/bin", "/usr/bin"]
    given = "/opt/mpi/bin", *path
    expected = str(own), [*([] if activated else [f"{own}/bin"]), *given]
    assert jobs_of(own / "bin/python", os.pathsep.join(given)) == expected


def test_a_python_that_has_another_name_alone(environments):
    """Debian has python3 without python; a link from another folder would leave the venv."""
    own, other = environments
    named = own / "bin/an own python"
    named.symlink_to((own / "bin/python").resolve())
    for link in own.glob("bin/python*"):
        link.unlink()
    prefix, folders = jobs_of(named, f"{other}/bin:/usr/bin")
    assert prefix == str(own)
    assert folders[1:] == [f"{own}/bin", f"{other}/bin", "/usr/bin"]
