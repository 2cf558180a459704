"""The wheel in environments of its own, installed by pip, uv and pipx, called as a person calls it.

Each takes 6 GB while it is tried. Other systems and Pythons are resolved, not installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

import numpy as np
import pytest

from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings, demo_video_names

ROOT = Path(__file__).parents[1]
# The least that has a picture: features made elsewhere, and a network that two ranks train.
CONFIG = """
dataset: {videos: null, annotations: actions.csv, video_info: durations.csv}
features: {source: external, external: {folder: features}}
temporal: {models: [span], exchange: ring, ranks: 2, training: {epochs: 1, hidden: 32, members: 2}}
proposals: {density: {epochs: 1}}
evaluation: {timelines: 0, baselines: [random]}
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> None:
    """Skips what needs packages where none can be downloaded."""
    folder = str(tmp_path_factory.mktemp("asked"))
    asked = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    asked += ["--retries=1", "--dest", folder, "argcomplete"]
    done = subprocess.run(asked, capture_output=True, text=True)
    # a folder of wheels may have this package, and not the others
    if done.returncode or "connection broken" in done.stderr:
        pytest.skip("the package index cannot be reached")


@pytest.fixture(scope="module", params=["pip", "uv tool", "pipx"])
def command(request, wheel, index, program, tmp_path_factory) -> Iterator[Path]:
    """The command `actionspan` of an environment that is removed afterwards."""
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    what, bin_folder, changed = f"{wheel}[workflow,mpi]", folder / "bin", {}
    if request.param == "pip":
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        words = [bin_folder / "python", "-m", "pip", "install", "--quiet", what]
    elif request.param == "uv tool":
        words = [program("uv"), "tool", "install", "--quiet", "--python", sys.executable, what]
        changed = {"UV_TOOL_DIR": folder / "tools", "UV_TOOL_BIN_DIR": bin_folder}
    else:
        words = [program("pipx"), "install", "--python", sys.executable, what]
        changed = {"PIPX_HOME": folder / "home", "PIPX_BIN_DIR": bin_folder}
    environment = {**os.environ, **{name: str(place) for name, place in changed.items()}}
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    yield bin_folder / "actionspan"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    settings = DemoSettings(videos=2, shortest_seconds=5.0, longest_seconds=5.5)
    render_demo(folder, settings, processes=1)
    return folder / demo_video_names(settings.videos)[0]


@pytest.fixture
def other(tmp_path) -> Path:
    """A folder first in PATH, whose programs of the same names are not ours."""
    folder = tmp_path / "other"
    folder.mkdir()
    for name in ("python", "python3", "mpiexec", "mpirun", "snakemake"):
        (folder / name).write_text("#!/bin/sh\necho another program >&2\nexit 3\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def project(tmp_path) -> Path:
    """A folder of features, with a table of what happens and when."""
    folder, names = tmp_path / "mine", [f"clip_{number}" for number in range(6)]
    (folder / "features").mkdir(parents=True)
    draws = np.random.default_rng(0)
    for name in names:
        np.save(folder / f"features/{name}.npy", draws.normal(size=(40, 8)).astype(np.float32))
    subsets = [*["training"] * 4, *["validation"] * 2]
    facts = [f"{name},20.0,{subset}\n" for name, subset in zip(names, subsets, strict=True)]
    rows = [f"{name},{3 + place},{8 + place},jump\n" for place, name in enumerate(names)]
    (folder / "durations.csv").write_text("video,duration,subset\n" + "".join(facts))
    (folder / "actions.csv").write_text("video,start,end,label\n" + "".join(rows))
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text(CONFIG)
    return folder


def surroundings(first: Path) -> dict[str, str]:
    """Return the environment of a shell in which nothing but a folder of PATH is set."""
    return {"PATH": f"{first}:/usr/bin:/bin", "HOME": str(first.parent), "OMP_NUM_THREADS": "1"}


def call(folder: Path, path: Path, *words: str | Path) -> str:
    """Run a command in a folder; return what it prints."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@"', "sh", *map(str, words)],  # finds words[0] by our PATH
        cwd=folder,
        env=surroundings(path),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_proposes(command, film, other, tmp_path):
    call(tmp_path, other, command, "propose", film, "--out", "found")
    assert (tmp_path / "found/events.csv").read_text().count("\n") > 1
    assert film.stem in (tmp_path / "found/index.html").read_text()


def test_it_serves_the_page(command, film, other, tmp_path):
    browser = build_opener(HTTPCookieProcessor(CookieJar()), ProxyHandler({}))
    words = [command, "review", film, "--out", tmp_path / "review", "--no-browser"]
    with subprocess.Popen(
        words, env=surroundings(other), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            address = server.stdout.readline().strip()
            browser.open(address).read()
            place = address.partition("?")[0]
            ends = time.monotonic() + 300
            while (status := json.load(browser.open(f"{place}status")))["doing"]:
                assert time.monotonic() < ends, status
                time.sleep(0.2)
            assert film.stem in browser.open(place).read().decode()
            assert status["broken"] == {}
        finally:
            server.terminate()
    assert server.returncode == 0


def test_called_by_its_path_it_trains_on_ranks_and_reports(command, project, other):
    """Python, mpiexec and Snakemake are those of the command, whatever PATH names first."""
    shutil.copy(project / "config/config.yaml", project)
    figure = "results/evaluation/recall_curves.svg"
    call(project, other, command, "run", figure, "--cores", "2")
    log = (project / "results/logs/temporal_train/span/ring-2.log").read_text()
    assert "1 worker" in log
    call(project, other, command, "run", figure, "--report", "report.html")
    assert "recall_curves.svg" in (project / "report.html").read_text()


def test_called_by_its_name_it_runs_the_module_of_the_docs(command, project):
    """With its folder first in PATH, as an environment has it that is activated."""
    page = (ROOT / "config/README.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (project / "Snakefile").write_text(snippet)
    said = call(project, command.parent, "actionspan", "run", "--dry-run")
    assert "actionspan_report_index" in said
    subset = "results/dataset/subsets/training.tsv"
    call(project, command.parent, "actionspan", "run", subset, "--cores", "2")
    assert (project / subset).read_text().count("\n") >= 4


# Snakemake asks for a pure Python package that has no wheel, and for `immutables`, which has none
# of Python 3.14. PyTorch and PyAV have wheels of macOS from 14 on, on Apple's processors.
WITHOUT_WHEEL = ["--no-binary", "connection-pool"]
SYSTEMS = ("linux", "aarch64-unknown-linux-gnu", "macos", "windows")
PYTHONS = ("3.11", "3.12", "3.13")
PROMISED = [
    *((system, python, "workflow,mpi,papers") for system in SYSTEMS for python in PYTHONS),
    *((system, "3.14", "mpi,papers") for system in SYSTEMS),
    *(("linux", "3.13", extra) for extra in ("fast,timm,transformers", "slurm,s3,mqtt", "decord")),
]


def resolve(uv: str, system: str, python: str, extras: str) -> subprocess.CompletedProcess:
    words = [uv, "pip", "compile", "--quiet", "--only-binary", ":all:", *WITHOUT_WHEEL]
    words += ["--python-platform", system, "--python-version", python]
    words += [word for extra in extras.split(",") for word in ("--extra", extra)]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}
    words.append(str(ROOT / "pyproject.toml"))
    return subprocess.run(words, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(("system", "python", "extras"), PROMISED)
def test_each_system_and_python_has_wheels_of_the_major_versions_that_are_tested(
    system, python, extras, index, program
):
    """What is not locked may be newer, and newer majors drop what we call."""
    done = resolve(program("uv"), system, python, extras)
    assert done.returncode == 0, done.stderr
    found, locked = (
        dict(re.findall(r"^([a-z0-9-]+)==(\d+)", text, re.MULTILINE))
        for text in (done.stdout, (ROOT / "envs/requirements.txt").read_text())
    )
    assert {name: found[name] for name in ("av", "torch", "h5py")} == {
        name: locked[name] for name in ("av", "torch", "h5py")
    }
    assert ("mpich" in found) == ("mpi" in extras and system != "windows")


def test_a_package_without_wheels_is_noticed(index, program):
    done = resolve(program("uv"), "x86_64-apple-darwin", "3.13", "mpi")
    assert done.returncode != 0
    assert "torch" in done.stderr
