"""A run of Snakemake takes over a folder from one that was killed, which left its lock and jobs.

Each run writes who it is into `.snakemake/runs/`. The next one finds there whether the lock in the
folder belongs to the living.
"""

import atexit
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree

from actionspan.jobs.supervisor import RUN
from actionspan.storage.process import Process, ancestors, batch_job

FOLDER = Path(".snakemake")
RUNS, LOCKS = FOLDER / "runs", FOLDER / "locks"


def begin_run(*, main: bool) -> None:
    """Let jobs know the Snakemake that starts them, this process; as `main`, take over the folder.

    The lock of a run that was killed is removed, after the rest of its jobs on this machine is
    ended. A lock stays if its owner lives or cannot be seen from here. The `main` Snakemake is the
    one that a person started, not a part of it in a job.
    """
    # 1. the jobs of this run know it
    me = Process.this()
    os.environ[RUN] = me.text()
    if not main:
        return
    # 2. the next run too: of two that start together, neither takes the other for dead
    RUNS.mkdir(parents=True, exist_ok=True)
    own = RUNS / f"{me.host}-{me.pid}"
    written = own.with_name(f".{own.name}")
    written.write_text(me.text(), encoding="utf-8")
    written.replace(own)
    atexit.register(_forget, own, me.pid)
    # 3. other recorded runs, and the remains of dead ones
    others = {path: Process.read(_text(path)) for path in RUNS.glob("[!.]*") if path != own}
    dead = {path: run for path, run in others.items() if run is None or run.alive() is False}
    runs = [run for path, run in others.items() if run is not None and path not in dead]
    for killed in filter(None, dead.values()):
        _end_jobs(killed)
    # 4. the lock: explained if its owner may live, else removed
    locked = any(LOCKS.glob("*.lock"))
    if runs and locked:
        _explain_lock(runs)
        return
    if dead and locked:
        rmtree(LOCKS, ignore_errors=True)
        print("actionspan: the last run in this folder was killed; resuming", file=sys.stderr)
    # without a lock, jobs of other machines have ended too
    for path, run in others.items():
        if path in dead or (run is not None and run.alive() is None):
            path.unlink(missing_ok=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return ""


def _forget(own: Path, pid: int) -> None:
    if os.getpid() == pid:
        own.unlink(missing_ok=True)


def _end_jobs(run: Process) -> None:
    """Kill all processes that a run left on this machine, even stopped or stuck ones."""
    mark = f"{RUN}={run.text()}".encode()
    spared = {os.getpid(), *ancestors(os.getpid())}
    deadline = time.monotonic() + 10
    while (left := _marked(mark, run.batch) - spared) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _marked(mark: bytes, batch: str) -> set[int]:
    """Return the processes with this in their environment, none without /proc.

    Batch jobs are left out: they inherit it on a cluster that hands the environment on.
    """
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            entries = path.read_bytes().split(b"\0")
        except OSError:
            continue  # another user's, or it has just ended
        if mark in entries and batch_job(entries) == batch:
            found.add(int(path.parent.name))
    return found


def _explain_lock(runs: Sequence[Process]) -> None:
    """Make Snakemake's error about the lock name its owner."""
    from snakemake import exceptions

    living = [run for run in runs if run.alive()]
    if living:
        line = (
            f"Snakemake already works in this folder (pid {living[0].pid} on this machine); "
            f"wait for it, or end it: kill {living[0].pid}"
        )
    else:
        line = (
            f"Snakemake works in this folder on {runs[0].host} (pid {runs[0].pid}), which "
            f"{socket.gethostname()} cannot see; if it has ended, run the same command there, "
            "or here once with --unlock"
        )

    def explain(self: exceptions.LockException) -> None:
        exceptions.WorkflowError.__init__(self, line)

    exceptions.LockException.__init__ = explain
