"""The set-up files say the same."""

import re
import tomllib
from pathlib import Path

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
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    names = {re.match(r"[A-Za-z0-9_.-]+", line)[0].lower() for line in wanted}
    assert set(listed) == names
    assert {name: lock[name] for name in listed} == listed


def test_the_lock_names_exact_versions_and_no_hosts():
    lines = (ROOT / "envs/requirements.txt").read_text().splitlines()
    assert not [line for line in lines if "://" in line or "--index" in line]
    bare = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    assert all("==" in line for line in bare)
