"""The rules of the Snakemake workflow catalogue, and a deployment as snakedeploy makes it."""

import os
import shutil
import subprocess
from functools import partial

import pytest
import yaml

from runs.conftest import ROOT, jobs_of, snakemake

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
def test_what_the_catalogue_checks_passes(words, program):
    done = subprocess.run([program(words[0]), *words[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def deployed(program, tmp_path_factory):
    """A folder that snakedeploy made, and the address of GitHub led to a repository here."""
    program("git")  # by which Snakemake fetches a module
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
        "GITHUB_TOKEN": "",
        "GIT_CONFIG_GLOBAL": str(base / "gitconfig"),
        "XDG_CACHE_HOME": str(base / "cache"),
        "PYTHONPATH": str(ROOT / "src"),  # as if the package were installed
    }
    for words in (["init", "--quiet"], ["add", "."], ["commit", "-qm", "All"], ["tag", "v9.9.9"]):
        subprocess.run(["git", *words], cwd=hub, env={**os.environ, **environment}, check=True)
    (mine / "workflow").mkdir(parents=True)
    (mine / "workflow/Snakefile").write_text(DEPLOYED)
    shutil.copytree(ROOT / "config", mine / "config")
    shutil.copytree(ROOT / "workflow/profiles", mine / "profiles")
    return mine, partial(snakemake, mine, **environment)


def test_a_deployed_workflow_plans_everything_by_default_runs_and_reports(deployed):
    mine, run = deployed
    done = run("--dry-run", "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"everything", "evaluation_summary", "report_index"} <= set(jobs_of(done.stdout))
    (mine / "config/config.yaml").write_text(SMALL)
    target = "results/dataset/demo/annotations.json"
    for words in ((target, "--cores", "2"), (target, "--report", "report.html")):
        done = run(*words)
        assert done.returncode == 0, done.stderr
    assert (mine / target).is_file()
    assert "dataset_demo" in (mine / "report.html").read_text()
