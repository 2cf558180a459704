"""A run takes over from a dead one, and never from one that lives or cannot be seen."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from snakemake import exceptions

from actionspan.jobs.supervisor import RUN
from actionspan.jobs.takeover import LOCKS, RUNS, begin_run
from actionspan.storage.process import Process


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN, "")
    monkeypatch.setattr(exceptions.LockException, "__init__", exceptions.LockException.__init__)
    monkeypatch.setattr("atexit.register", lambda *words: None)


def leave_lock(*runs: Process) -> None:
    LOCKS.mkdir(parents=True)
    (LOCKS / "0.output.lock").write_text("results/a\n")
    RUNS.mkdir()
    for number, run in enumerate(runs):
        (RUNS / f"run{number}").write_text(run.text())


def dead() -> Process:
    child = subprocess.Popen(["sleep", "600"])
    process = Process.of(child.pid)
    child.kill()
    child.wait()
    return process


def test_the_lock_of_a_killed_run_is_removed(capsys):
    leave_lock(dead(), dead())
    (RUNS / "cut short by a power failure").write_text("")
    begin_run(main=True)
    assert not LOCKS.exists()
    assert len(list(RUNS.iterdir())) == 1
    assert "was killed; resuming" in capsys.readouterr().err
    assert Process.read(os.environ[RUN]) == Process.this()


def test_a_number_used_again_or_a_restart_is_no_life():
    for run in (replace(Process.this(), born="1"), replace(Process.this(), boot="before")):
        assert run.alive() is False


@pytest.mark.parametrize("with_dead", [False, True])
def test_the_lock_of_a_living_run_stays_and_is_explained(with_dead):
    leave_lock(Process.of(os.getppid()), *([dead()] if with_dead else []))
    begin_run(main=True)
    assert LOCKS.exists()
    assert f"pid {os.getppid()} on this machine" in str(exceptions.LockException())


def test_the_lock_of_another_machine_stays_and_the_cure_is_told():
    leave_lock(replace(Process.this(), host="login2"))
    begin_run(main=True)
    assert LOCKS.exists()
    message = str(exceptions.LockException())
    assert "on login2 (pid" in message
    assert "--unlock" in message
    rmtree(LOCKS)  # without a lock it is forgotten
    begin_run(main=True)
    assert len(list(RUNS.iterdir())) == 1


def test_a_lock_that_nobody_is_known_to_own_stays():
    leave_lock()
    begin_run(main=True)
    assert LOCKS.exists()


def test_a_part_of_snakemake_in_a_job_takes_nothing_over():
    leave_lock(dead())
    begin_run(main=False)
    assert LOCKS.exists()
    assert Process.read(os.environ[RUN]) == Process.this()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes by /proc")
def test_what_a_killed_run_left_is_ended_but_not_a_batch_job():
    run = dead()
    environment = {**os.environ, RUN: run.text()}
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    environments = (environment, {**environment, "SLURM_JOB_ID": "7"})
    stopped, batch = (
        subprocess.Popen(sleep, env=each, stdout=subprocess.PIPE) for each in environments
    )
    try:
        for process in (stopped, batch):
            process.stdout.readline()
        stopped.send_signal(19)  # SIGSTOP
        leave_lock(run)
        begin_run(main=True)
        assert stopped.wait() == -9
        assert batch.poll() is None
    finally:
        for process in (stopped, batch):
            process.kill()
            process.communicate()
