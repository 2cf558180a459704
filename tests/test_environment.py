"""The set-up files say the same."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def pins(lines) -> dict[str, str]:
    found = {}
    for line in lines:
        if match := re.match(r"([A-Za-z0-9_.-]+)==([^ ;]+)", line):
            found.setdefault(match[1].lower(), match[2])
    return found


def test_conda_users_get_the_locked_versions():
    lock = pins((ROOT / "envs/requirements.txt").read_text().splitlines())
    conda = yaml.safe_load((ROOT / "envs/environment.yaml").read_text())
    listed = pins(conda["dependencies"][-1]["pip"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    wanted += extras["workflow"] + extras["mpi"]
    names = {re.match(r"[A-Za-z0-9_.-]+", line)[0].lower() for line in wanted}
    assert set(listed) == names
    assert {name: lock[name] for name in listed} == listed


def test_the_lock_names_exact_versions_and_no_hosts():
    lines = (ROOT / "envs/requirements.txt").read_text().splitlines()
    assert not [line for line in lines if "://" in line or "--index" in line]
    bare = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    assert all("==" in line for line in bare)


@pytest.fixture(scope="module")
def install():
    spec = importlib.util.spec_from_file_location("install", ROOT / "envs/install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("wanted", "platform", "has_gpu", "build"),
    [
        ("auto", "linux", True, "cuda"),
        ("auto", "linux", False, "cpu"),
        ("cpu", "linux", True, "cpu"),
        ("cuda", "linux", False, "cuda"),
        ("auto", "darwin", False, "default"),
        ("cuda", "win32", True, "default"),
    ],
)
def test_the_build_of_torch_is_what_the_machine_has(install, wanted, platform, has_gpu, build):
    assert install.choose(wanted, platform, has_gpu) == build


def test_one_lock_serves_both_builds(install):
    """All that goes is what torch alone asks for."""
    lock = (ROOT / "envs/requirements.txt").read_text()
    lean = install.without_cuda(lock)
    gone = set(pins(lock.splitlines())) - set(pins(lean.splitlines()))
    assert {"triton", "nvidia-nccl-cu13"} <= gone
    assert not {name for name in pins(lean.splitlines()) if "cuda" in name or "nvidia" in name}
    for name in gone:
        (asking,) = re.findall(rf"^{name}==.*\n((?:    #.*\n)+)", lock, re.MULTILINE)
        by = set(re.findall(r"# +(?:via )?([a-z][\w-]*)$", asking, re.MULTILINE)) - {"via"}
        assert by <= gone | {"torch"}, name


@pytest.mark.parametrize("wanted", ["auto", "cpu"])
def test_without_the_cpu_build_the_other_is_installed_if_none_was_asked_for(
    install, wanted, monkeypatch, capsys
):
    tried = []
    monkeypatch.setattr(sys, "argv", ["install.py", "--torch", wanted])
    monkeypatch.setattr(install, "choose", lambda *_: "cpu")

    def fail(words, **_):
        tried.append(words)
        return subprocess.CompletedProcess(words, 2 if "--torch-backend" in words else 0)

    monkeypatch.setattr(install.subprocess, "run", fail)
    assert install.main() == (0 if wanted == "auto" else 2)
    assert len(tried) == (2 if wanted == "auto" else 1)
    assert ("cannot be reached" in capsys.readouterr().err) == (wanted == "auto")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux binds processes to cores")
def test_make_demo_uses_the_cores_that_it_may_whatever_openmp_is_told():
    def asked(*cores: int) -> str:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores or before)
        try:
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1"}
            words = ["make", "--dry-run", "demo"]
            said = subprocess.run(
                words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            )
        finally:
            os.sched_setaffinity(0, before)
        return re.search(r"--cores (\d+)", said.stdout)[1]

    assert int(asked()) == len(os.sched_getaffinity(0))
    assert int(asked(min(os.sched_getaffinity(0)))) == 1
