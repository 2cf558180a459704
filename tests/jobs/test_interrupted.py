"""Ctrl-C, which reaches every process of a terminal, leaves no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from worlds.waiting import eventually

SLOW = """
import os, pathlib, time
if os.environ.setdefault("FIRST", str(os.getpid())) != str(os.getpid()):
    pathlib.Path("importing").touch()
    time.sleep(3)

def work(item):
    return item
"""
MAIN = """
import slow
from actionspan.jobs.apart import work_apart

if __name__ == "__main__":
    try:
        list(work_apart(slow.work, [1]))
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_a_worker_that_is_still_importing_says_nothing(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "main.py").write_text(MAIN)
    with subprocess.Popen(
        [sys.executable, "main.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    ) as process:
        eventually((tmp_path / "importing").exists)
        os.killpg(process.pid, signal.SIGINT)
        said, errors = process.communicate(timeout=60)
    assert (said, errors) == ("interrupted\n", "")
