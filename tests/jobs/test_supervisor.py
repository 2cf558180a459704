"""A job ends with its run, its shell or itself, is named when killed, and never meets a second."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from actionspan.jobs.supervisor import ENDED, RUN, WRITERS
from actionspan.storage.process import Process
from tiers import first_tier
from worlds.waiting import eventually, gone

SLEEPER = """
import os, sys, time
from pathlib import Path
from actionspan.jobs.progress import doing, make_board
from actionspan.jobs.supervisor import supervise
supervise(sys.argv[1:])
doing("sleeping")
Path(sys.argv[-1]).write_text(str(os.getpid()))
time.sleep(float(sys.argv[-2]))
sys.exit(7)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes by /proc")


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a job that sleeps, as a child of this process, which plays Snakemake."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN, Process.this().text())
    WRITERS.parent.mkdir()
    started = []

    def run(seconds: float, name: str, *words: str, run: str | None = None) -> subprocess.Popen:
        environment = {**os.environ, **({} if run is None else {RUN: run})}
        command = [sys.executable, "-c", SLEEPER, "stage", "step", *words, str(seconds), name]
        job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        started.append(job)
        return job

    yield run
    for job in started:
        job.kill()
        job.wait()
        job.stderr.close()


def child_of(name: str) -> int:
    eventually(lambda: Path(name).exists() and Path(name).read_text())
    return int(Path(name).read_text())


def test_its_exit_status_is_that_of_the_work(start):
    assert start(0, "job").wait() == 7


def test_a_command_typed_by_hand_or_of_another_machine_or_batch_job_is_left_alone(start):
    run = Process.this().text()
    others = ("", run.replace('"batch": "', '"batch": "9'), run.replace("{", "["))
    for number, text in enumerate(others):
        job = start(0, f"job{number}", run=text)
        assert job.wait() == 7
        assert child_of(f"job{number}") == job.pid


@pytest.mark.parametrize("number", first_tier([signal.SIGKILL, signal.SIGSEGV], signal.SIGKILL))
def test_a_signal_that_killed_it_is_named_with_what_it_did(start, number):
    job = start(600, "job")
    pid = child_of("job")
    os.kill(pid, number)
    said = job.communicate()[1]
    assert job.returncode == -number
    assert said.startswith(f"actionspan stage: stage step (pid {pid} on ")
    assert f"was killed by signal {int(number)} (" in said
    assert " while sleeping; run the same command again" in said


def test_it_passes_on_the_signal_that_asks_it_to_end(start):
    job = start(600, "job")
    pid = child_of("job")
    job.terminate()
    assert job.communicate()[1] == ""
    assert job.returncode == -signal.SIGTERM
    eventually(lambda: gone(pid))


@pytest.mark.parametrize("victim", first_tier(["run", "shell"], "run"))
def test_it_ends_with_what_started_it(start, tmp_path, victim):
    """The run is a process that starts a shell, which starts the job."""
    code = (
        "import os, subprocess, sys\n"
        "from actionspan.storage.process import Process\n"
        f"os.environ[{RUN!r}] = Process.this().text()\n"
        "job = f'{sys.executable} -c \"$CODE\" stage step 600 job; true'\n"
        "shell = subprocess.Popen(['bash', '-c', job])\n"
        "print(shell.pid, flush=True)\n"
        "shell.wait()\n"
        "import time; time.sleep(600)\n"
    )
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", code]
    run = subprocess.Popen(command, env={**os.environ, "CODE": SLEEPER}, **how)
    try:
        shell = int(run.stdout.readline())
        pid = child_of("job")
        os.kill(run.pid if victim == "run" else shell, signal.SIGKILL)
        eventually(lambda: gone(pid) and gone(shell))
    finally:
        run.kill()
        run.communicate()


def test_two_jobs_never_make_the_same_file_at_once(start):
    first = start(600, "first", "--out", "a/b.h5")
    pid = child_of("first")
    second = start(0, "second", "--out", "a/b.h5")
    other = start(0, "other", "--out", "a/c.h5")
    assert other.wait() == 7
    assert "waiting for pid" in (line := second.stderr.readline())
    assert f"pid {first.pid} on " in line
    assert not Path("second").exists()
    os.kill(pid, signal.SIGKILL)
    first.wait()
    assert second.wait() == 7
    assert not list(WRITERS.iterdir())


def test_only_outputs_decide_whether_two_jobs_make_the_same_file(start):
    """`temporal train` has --output-scale, after which all trainings waited for one another."""
    start(600, "first", "--output-scale=1.0", "--members=5", "--out", "a")
    child_of("first")
    assert start(0, "second", "--output-scale=1.0", "--members=5", "--out", "b").wait(20) == 7


@pytest.mark.full
def test_a_job_that_waits_ends_with_its_run_too(start, tmp_path):
    first = start(600, "first", "--out", "x")
    child_of("first")
    run = subprocess.Popen(["sleep", "600"])
    second = start(0, "second", "--out", "x", run=Process.of(run.pid).text())
    assert "waiting" in second.stderr.readline()
    run.kill()
    run.wait()
    assert second.wait() == ENDED
    assert first.poll() is None
