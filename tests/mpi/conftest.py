"""A launcher of real MPI jobs that never outlive their test."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from actionspan.parallel.launch import POLITE
from worlds.warm import python

MARK = "ACTIONSPAN_TEST_JOB"  # in the environment of every process of a job
TESTS = Path(__file__).parents[1]  # ranks import from here what tests import

Mpirun = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def mpirun(tmp_path_factory: pytest.TempPathFactory) -> Mpirun:
    """Run `mpirun -n N python -m mpi4py SCRIPT`, or a list of words for the script.

    A job that takes longer than `timeout` seconds, or that fails while `check` is set, fails the
    test with its output. All processes of the job are ended before the call returns.
    """
    program = Path(sys.executable).with_name("mpirun")
    cache = str(tmp_path_factory.mktemp("cache"))  # not the user's
    if not program.exists():
        pytest.skip(f"no mpirun beside {sys.executable}; pip install mpich")

    def run(
        n: int,
        script_or_words: Path | Sequence[str],
        *args: object,
        timeout: float = 60,
        check: bool = True,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        words = [script_or_words] if isinstance(script_or_words, Path) else script_or_words
        command = [program, "-n", n, python(), "-m", "mpi4py", *words, *args]
        job = uuid.uuid4().hex
        path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, "ACTIONSPAN_CACHE": cache}
        own |= {**POLITE, **(env or {}), MARK: job}
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**os.environ, **own},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        late = False
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            end_job(process, job)
        if late:
            output, errors = process.communicate()
            pytest.fail(f"{n} ranks took more than {timeout:g} s\n{output[-4000:]}{errors[-4000:]}")
        if check and process.returncode:
            pytest.fail(f"status {process.returncode}\n{output[-4000:]}{errors[-4000:]}")
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    return run


@pytest.fixture(scope="session")
def rows_of(mpirun: Mpirun) -> Callable[..., dict[str, dict[str, Any]]]:
    """Run a script of cases (`ranks.py`) by `mpirun`; return the JSON line of each, by its name."""

    def run(*arguments: Any, **options: Any) -> dict[str, dict[str, Any]]:
        lines = mpirun(*arguments, **options).stdout.splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return {row["case"]: row for row in rows}

    return run


def end_job(process: "subprocess.Popen[str]", job: str) -> None:
    """Kill the launcher's process group, and the ranks, each of which has a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.poll()
    kill_all(job_processes(job))


def kill_all(processes: Iterable[int]) -> None:
    """Kill processes; those that have ended do not matter."""
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def job_processes(job: str) -> list[int]:
    """Return the live processes of a job."""
    return processes_with(MARK, job)


def processes_with(variable: str, value: str) -> list[int]:
    """Return the live processes with that in their environment (none where there is no /proc)."""
    mark = f"{variable}={value}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found
