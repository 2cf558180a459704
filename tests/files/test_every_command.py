"""What each command makes of a disk that fills up and of a flipped bit: one line, never a crash."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def outcomes(folder: Path, what: str) -> dict[str, str]:
    """Return what became of each case; a process of its own has imported what commands need."""
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    words = [sys.executable, "-m", "files.every_command", str(folder), what]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.fixture
def small_disk(tmp_path):
    """Skip where no small disk can be mounted."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount the small disk that this fills")
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_is_one_line_and_with_room_the_command_ends(tmp_path):
    found = outcomes(tmp_path, "full_disk")
    assert {case: what for case, what in found.items() if what not in ("line", "fits")} == {}
    assert list(found.values()).count("line") >= len(found) / 2


def test_a_flipped_bit_changes_nothing_or_is_one_line(tmp_path):
    found = outcomes(tmp_path, "flips")
    assert {case: what for case, what in found.items() if what not in ("line", "same")} == {}
    assert list(found.values()).count("line") >= len(found) / 2
