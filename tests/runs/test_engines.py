"""Containers and conda: what Snakemake asks of them, by stand-ins of both commands."""

import os
import re
from pathlib import Path

import pytest
import yaml

from runs.conftest import EXTERNAL, ROOT, Project, copy_program, write_external

pytestmark = pytest.mark.workflow

# Notes the image, and runs the command here.
APPTAINER = """#!/bin/bash
[ "$1" = --version ] && { echo "apptainer version 1.3.6"; exit; }
image=${@: -4:1}
echo "$image" >> images.txt
[ -e "$image" ] || { echo "no such image: $image" >&2; exit 255; }
exec "${@: -3}"
"""
CONDA = """#!/bin/bash
case "$*" in
    "info --json") echo '{"conda_prefix": "/nowhere", "platform": "linux-64"}' ;;
    --version) echo "conda 25.1.0" ;;
    "config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}' ;;
    *) echo "not in a dry run: conda $*" >&2; exit 1 ;;
esac
"""
TARGET = "results/dataset/videos.tsv"


@pytest.fixture
def commands(tmp_path, monkeypatch) -> Path:
    """A folder of commands that come before all others."""
    folder = tmp_path / "commands"
    folder.mkdir()
    for name, text in (("apptainer", APPTAINER), ("conda", CONDA)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def external(tmp_path) -> Project:
    """A project whose table of videos needs nothing but annotations."""
    write_external(tmp_path, {"a": "training", "b": "validation"})
    return copy_program(tmp_path)


def configured(image: str | None = None) -> dict:
    return {**EXTERNAL, "cluster": {"container": image}}


def rules(text: str) -> list[str]:
    return re.findall(r"^\w+ +\d+$", text, re.MULTILINE)


def test_jobs_run_in_the_container_of_the_configuration(commands, external):
    image = external.folder / "image.sif"
    image.touch()
    external.make(TARGET, "--sdm", "apptainer", config=configured(str(image)))
    assert external.text("images.txt").splitlines() == [str(image)]
    assert external.text(TARGET).count("\n") == 3


def test_the_image_is_the_container_and_not_this_machine(commands, external):
    done = external.snakemake(TARGET, "--sdm", "apptainer", config=configured("gone.sif"))
    assert done.returncode != 0
    assert not (external.folder / TARGET).exists()


def test_without_an_image_nothing_runs_outside_of_one(commands, external):
    done = external.snakemake(TARGET, "--sdm", "apptainer", config=configured())
    assert done.returncode != 0
    assert "cluster.container: null, but --sdm apptainer runs jobs in an image" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_engine_plans_the_same_jobs(commands, external):
    image = external.folder / "image.sif"
    image.touch()
    plain = external.snakemake("--dry-run", config=configured()).stdout
    assert len(rules(plain)) > 10
    inside = external.snakemake("--dry-run", "--sdm", "apptainer", config=configured(str(image)))
    assert rules(inside.stdout) == rules(plain)
    conda = external.snakemake("--dry-run", "--sdm", "conda", config=configured())
    assert rules(conda.stdout) == rules(plain), conda.stderr
    created = re.findall(r"Conda environment (\S+) will be created", conda.stdout + conda.stderr)
    assert {Path(name).name for name in created} == {"environment.yaml"}


def test_every_rule_with_a_command_has_the_environment():
    for path in ROOT.glob("workflow/rules/*.smk"):
        text = path.read_text()
        assert text.count('"../../envs/environment.yaml"') == len(
            re.findall(r"^ +shell:", text, re.M)
        )
    assert yaml.safe_load((ROOT / "envs/environment.yaml").read_text())["dependencies"][-1]["pip"]


def test_the_image_is_built_from_the_lock_by_the_uv_of_the_makefile():
    lines = (ROOT / "envs/Dockerfile").read_text()
    version = re.search(r"^UV_VERSION = (\S+)$", (ROOT / "Makefile").read_text(), re.M)[1]
    assert f"uv=={version}" in lines
    assert "RUN python envs/install.py" in lines
    copied = re.findall(r"^COPY (.+) \S+$", lines, re.M)
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name
