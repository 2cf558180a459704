"""The wheel brings the workflow: a project runs without a checkout."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SMALL = "demo: {videos: 2, shortest_seconds: 5.0, longest_seconds: 5.5}\n"
TARGET = "results/dataset/demo/annotations.json"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The wheel, unpacked as pip does it."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def call(*words: object, folder: Path, status: int = 0, **environment: object) -> str:
    """Run a command in a folder; return what it prints, or its errors if it fails."""
    known = {name: str(value) for name, value in environment.items()}
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=known, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def actionspan(installed: Path, folder: Path, *words: str, status: int = 0) -> str:
    """Run the command of the wheel in this environment."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = (sys.executable, "-m", "actionspan", *words)
    known = {**os.environ, "PYTHONPATH": installed, "PATH": path}
    return call(*command, folder=folder, status=status, **known)


def test_a_project_is_planned_and_its_first_files_made(installed, tmp_path):
    said = actionspan(installed, tmp_path, "init", "mine")
    assert said == "mine/config.yaml: written; now: cd mine && actionspan run\n"
    folder = tmp_path / "mine"
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config == {"dataset": {"videos": "demo", "annotations": None}}
    (folder / "small.yaml").write_text(SMALL)
    small = ["--configfile", "small.yaml"]
    assert "evaluation_summary" in actionspan(installed, folder, "run", "--dry-run", *small)
    actionspan(installed, folder, "run", "results/dataset/videos.tsv", *small)
    assert len((folder / "results/dataset/videos.tsv").read_text().splitlines()) == 1 + 2
    # it ran the package, not this checkout
    log = max((folder / ".snakemake/log").iterdir()).read_text()
    assert "site/actionspan/project/config.yaml" in log
    assert str(ROOT) not in log
    assert actionspan(installed, tmp_path, "--cite") == (ROOT / "CITATION.cff").read_text()


def declared(metadata: Path) -> dict[str, Distribution]:
    """Return what pip would install with the wheel and its extras `workflow` and `mpi`."""
    found: dict[str, Distribution] = {}
    waiting = [(Distribution.at(metadata), extra) for extra in ("workflow", "mpi")]
    seen = set()
    while waiting:
        asking, extra = waiting.pop()
        for requirement in map(Requirement, asking.requires or ()):
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            for inner in requirement.extras or {""}:
                if (requirement.name, inner) not in seen:
                    seen.add((requirement.name, inner))
                    found[requirement.name] = distribution(requirement.name)
                    waiting += [(found[requirement.name], each) for each in {inner, ""}]
    return found


@pytest.fixture(scope="module")
def elsewhere(installed, tmp_path_factory) -> Path:
    """An environment of its own with the wheel and what it asks for, as `uv tool install` makes it.

    Whatever else is installed here is not in it.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "wheel.pth").write_text(f"{installed}\n")
    for each in declared(next(installed.glob("*.dist-info"))).values():
        for name in {file.parts[0] for file in each.files} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(each.locate_file(name))
    script = folder / "bin/actionspan"
    script.write_text(
        f"#!{folder}/bin/python\nimport sys\nfrom actionspan.cli import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    return folder


def test_a_report_needs_nothing_but_the_extras(elsewhere, tmp_path):
    (tmp_path / "config.yaml").write_text(SMALL)
    command = (elsewhere / "bin/actionspan", "run", TARGET)
    for flags in ([], ["--report", "report.html"]):
        call(*command, *flags, folder=tmp_path, PATH="/usr/bin:/bin", HOME=tmp_path)
    assert "dataset_demo" in (tmp_path / "report.html").read_text()


def test_every_module_is_imported_without_what_is_optional(elsewhere, tmp_path):
    code = """
import importlib, pkgutil, actionspan
for module in pkgutil.walk_packages(actionspan.__path__, "actionspan."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
    command = (elsewhere / "bin/python", "-c", code)
    call(*command, folder=tmp_path, PATH="/usr/bin:/bin", HOME=tmp_path)


@pytest.mark.parametrize("words", [["actionspan", "run"], ["python3", "-m", "snakemake"]])
def test_jobs_run_in_the_environment_of_the_command_wherever_it_is(
    words, installed, elsewhere, tmp_path
):
    other, folder = tmp_path / "other", tmp_path / "mine"  # an environment somebody activated
    other.mkdir()
    folder.mkdir()
    for name in ("python", "python3", "actionspan"):
        (other / name).write_text("#!/bin/sh\necho another program >&2\nexit 3\n")
        (other / name).chmod(0o755)
    (folder / "small.yaml").write_text(SMALL)
    flags = ["--cores", "1", "--configfile", "small.yaml"]
    if words[0] != "actionspan":
        flags += ["--snakefile", installed / "actionspan/project/Snakefile"]
    command = (elsewhere / "bin" / words[0], *words[1:], TARGET, *flags)
    path = f"{other}:/usr/local/bin:/usr/bin:/bin"
    call(*command, folder=folder, PATH=path, HOME=tmp_path)
    assert (folder / TARGET).is_file()


def test_the_wheel_brings_a_model(installed):
    brought = installed / "actionspan/propose/demo.safetensors"
    assert brought.read_bytes() == (ROOT / "src/actionspan/propose/demo.safetensors").read_bytes()


def test_a_project_of_your_own_videos(installed, tmp_path):
    (tmp_path / "my videos").mkdir()
    (tmp_path / "actions.csv").write_text("video,start,end,label\n")
    words = ("init", "mine", "--videos", "my videos", "--annotations", "actions.csv")
    actionspan(installed, tmp_path, *words)
    named = yaml.safe_load((tmp_path / "mine/config.yaml").read_text())["dataset"]
    assert named == {
        "videos": str(tmp_path / "my videos"),
        "annotations": str(tmp_path / "actions.csv"),
    }
    again = actionspan(installed, tmp_path, *words, status=2)
    assert again.endswith("mine/config.yaml: is there already; choose another folder\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--videos", "none"], "--videos and --annotations go together"),
        (["--videos", "none", "--annotations", "a.csv"], "--videos none: no such folder"),
        (["--videos", ".", "--annotations", "a.csv"], "--annotations a.csv: no such file"),
    ],
)
def test_what_is_missing_is_one_line(installed, tmp_path, words, line):
    said = actionspan(installed, tmp_path, "init", "mine", *words, status=2)
    assert said == f"actionspan init: {line}\n"
    assert not (tmp_path / "mine").exists()


def test_the_page_of_results_is_whole(installed, tmp_path):
    code = (
        "from pathlib import Path; from actionspan.report.content import Page; "
        "from actionspan.report.page import write_page; "
        "write_page(Path('index.html'), Page(title='mine', videos=()))"
    )
    known = {**os.environ, "PYTHONPATH": installed}
    call(sys.executable, "-c", code, folder=tmp_path, **known)
    assert "uPlot" in (tmp_path / "index.html").read_text()
    for kind in ("assets", "assets/vendor", "templates"):
        brought, sources = (
            {path.name for path in (folder / "actionspan/report" / kind).glob("*.*")}
            for folder in (installed, ROOT / "src")
        )
        assert brought == sources


def test_the_page_of_the_package_says_what_it_is(installed):
    (metadata,) = installed.glob("*.dist-info/METADATA")
    text = metadata.read_text()
    assert "\nRequires-Dist: torch" in text
    assert "Requires-Dist: torch==" not in text, "a user's own torch stays"
    for extra in ("workflow", "mpi"):
        assert f"Provides-Extra: {extra}" in text
    assert "\nClassifier: Topic :: " in text
    assert "\nKeywords: " in text
