"""The rules of the Snakemake workflow catalogue, and a deployment as snakedeploy makes it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from runs.conftest import ROOT

pytestmark = pytest.mark.workflow

CATALOGUE = ".snakemake-workflow-catalog.yml"
# What snakedeploy writes
DEPLOYED = """
from snakemake.utils import min_version

min_version("6.10.0")

configfile: "config/config.yaml"

module actionspan:
    snakefile:
        github("owner/actionspan", path="workflow/Snakefile", tag="v9.9.9")
    config:
        config

use rule * from actionspan
"""
SMALL = "demo: {videos: 2, shortest_seconds: 5.0, longest_seconds: 5.5}\n"


def test_it_is_found_and_listed():
    readme = (ROOT / "README.md").read_text()
    assert "snakemake workflow" in readme.lower(), "the catalogue searches READMEs for both words"
    assert "Snakemake workflow" in readme.split("\n## ")[0], "in its title or first lines"
    assert (ROOT / "workflow/Snakefile").is_file()
    assert {path.suffix for path in (ROOT / "workflow/rules").iterdir()} == {".smk"}


def test_its_use_is_standardised():
    page = (ROOT / "config/README.md").read_text()
    assert "pip install" in page, "the catalogue shows this page: it names what to install"
    assert "](../" not in page, "and there a path leads nowhere"
    usage = yaml.safe_load((ROOT / CATALOGUE).read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    deployment = usage["software-stack-deployment"]
    assert set(deployment) <= {"conda", "apptainer", "apptainer+conda"}
    assert all(isinstance(value, bool) for value in [usage["report"], *deployment.values()])


@pytest.mark.parametrize(
    "words",
    [["snakemake", "--lint"], ["snakefmt", "--check", "workflow/Snakefile", "workflow/rules"]],
    ids=["lint", "format"],
)
def test_what_the_catalogue_checks_passes(words, tmp_path):
    if shutil.which(words[0], path=path()) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, "PATH": path()}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """A folder that snakedeploy made, and the address of GitHub led to a repository here."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, by which Snakemake fetches a module")
    base = tmp_path_factory.mktemp("deployed")
    hub, mine = base / "hub", base / "mine"
    hub.mkdir()
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, hub)
    for name in ("workflow", "config", "envs", "examples"):
        shutil.copytree(ROOT / name, hub / name, ignore=shutil.ignore_patterns("__pycache__"))
    (base / "gitconfig").write_text(
        f'[url "file://{hub}"]\n    insteadOf = https://github.com/owner/actionspan\n'
        "[user]\n    name = Nobody\n    email = nobody@example.org\n"
    )
    environment = {
        **{name: value for name, value in os.environ.items() if name != "GITHUB_TOKEN"},
        "GIT_CONFIG_GLOBAL": str(base / "gitconfig"),
        "XDG_CACHE_HOME": str(base / "cache"),
        # as if the package were installed
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": path(),
    }
    for words in (["init", "--quiet"], ["add", "."], ["commit", "-qm", "All"], ["tag", "v9.9.9"]):
        subprocess.run(["git", *words], cwd=hub, env=environment, check=True)
    (mine / "workflow").mkdir(parents=True)
    (mine / "workflow/Snakefile").write_text(DEPLOYED)
    shutil.copytree(ROOT / "config", mine / "config")
    shutil.copytree(ROOT / "workflow/profiles", mine / "profiles")

    def snakemake(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "snakemake", *words],
            cwd=mine,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return mine, snakemake


def test_a_deployed_workflow_plans_everything_by_default(deployed):
    _, snakemake = deployed
    done = snakemake("--dry-run", "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    planned = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    assert {"everything", "evaluation_summary", "report_index"} <= set(planned)


def test_a_deployed_workflow_runs_and_reports(deployed):
    mine, snakemake = deployed
    (mine / "config/config.yaml").write_text(SMALL)
    target = "results/dataset/demo/annotations.json"
    done = snakemake(target, "--cores", "2")
    assert done.returncode == 0, done.stderr
    assert (mine / target).is_file()
    done = snakemake(target, "--report", "report.html")
    assert done.returncode == 0, done.stderr
    assert "dataset_demo" in (mine / "report.html").read_text()


def test_the_workflow_of_a_checkout_makes_everything_by_either_file(tmp_path):
    for name in ("Snakefile", "workflow/Snakefile"):
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--snakefile", ROOT / name, "--dry-run"],
            cwd=tmp_path,
            env={**os.environ, "PATH": path()},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "report_index" in done.stdout, name
