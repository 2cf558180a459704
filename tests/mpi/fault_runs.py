"""MPI jobs that train the temporal network and are made to fail, for `test_faults.py`."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from actionspan.parallel.launch import POLITE
from mpi.conftest import MARK, end_job, job_processes
from temporal.conftest import Toy
from worlds.warm import python

SCRIPT = Path(__file__).with_name("fault_job.py")
MPIRUN = Path(sys.executable).with_name("mpirun")
SERVED = ("ps", "ps_async")  # rank 0 only serves


def training(
    toy: Toy, out: Path, exchange: str, ranks: int, *flags: str, epochs: int = 4000
) -> list[str]:
    """Return the words of a training command: two steps an epoch, 10 ms of computing an epoch."""
    return [
        "temporal", "train", "--features", str(toy.features), "--annotations", str(toy.annotations),
        "--out", str(out), "--exchange", exchange, "--ranks", str(ranks), "--epochs", str(epochs),
        "--hidden", "16", "--batch-size", "8", "--bucket-kib", "4", *flags,
    ]  # fmt: skip


@dataclass
class Ended:
    """What came of a job."""

    status: int
    errors: str
    processes: dict[int, int]
    """PID of each rank, as the line of the ranks tells; empty where there is none."""
    left: list[int]
    """Processes that were still there seconds after the launcher had ended."""

    def lines(self) -> list[str]:
        """Return the lines that are the command's own complaints."""
        return [line for line in self.errors.splitlines() if line.startswith("actionspan")]


class Job:
    """`mpirun -n N python -m mpi4py …` of a command, all its output in a log.

    `fault` is for `fault_job.py`; None is the command itself, without that script.
    """

    def __init__(self, n: int, words: list[str], log: Path, fault: str | None = "-") -> None:
        program = ["-m", "actionspan"] if fault is None else [str(SCRIPT), fault]
        self.log, self.name = log, uuid.uuid4().hex
        interpreter = python() if fault == "-" else sys.executable
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [str(MPIRUN), "-n", str(n), interpreter, "-m", "mpi4py", *program, *words],
                env={**os.environ, **POLITE, "OMP_NUM_THREADS": "1", MARK: self.name},
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def processes(self) -> dict[int, int]:
        """Return the PID of each rank, as far as the job has said."""
        (line,) = re.findall(r"^ranks: (.*)$", self.log.read_text(), re.M) or [""]
        return {
            int(rank): int(pid) for rank, pid in re.findall(r"(\d+) \w+ \(pid (\d+) on \S+\)", line)
        }

    def wait_until(self, there: Callable[[], object], seconds: float = 60) -> bool:
        """Wait for something to be there; return whether the job still ran when it was."""
        deadline = time.monotonic() + seconds
        while not there():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.002)
        return self.process.poll() is None

    def signal(self, whom: str, number: int) -> None:
        """Send a signal to `mpirun`, to its group, its `proxy`, or a rank such as `rank 1`."""
        ranks = self.processes()
        if whom == "mpirun":
            os.kill(self.process.pid, number)
        elif whom == "group":
            os.killpg(self.process.pid, number)
        elif whom == "proxy":
            children = Path("/proc", str(self.process.pid), "task", str(self.process.pid))
            (proxy,) = map(int, (children / "children").read_text().split())
            os.kill(proxy, number)
        else:
            os.kill(ranks[int(whom.removeprefix("rank "))], number)

    def end(self, seconds: float = 60) -> Ended:
        """Wait for the end of the launcher, and a little for that of all others."""
        try:
            self.process.wait(seconds)
            deadline = time.monotonic() + 10
            while (left := job_processes(self.name)) and time.monotonic() < deadline:
                time.sleep(0.02)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it hangs:\n{self.log.read_text()[-3000:]}") from None
        finally:
            end_job(self.process, self.name)
        return Ended(self.process.returncode, self.log.read_text(), self.processes(), left)

    def kill(self, whom: str) -> Ended:
        """Kill one of its processes and wait for the end of all."""
        self.signal(whom, signal.SIGKILL)
        return self.end()


def ranks_of(job: Job) -> dict[int, int]:
    """Return the PID of each rank: the child of the process that the launcher started."""
    found = {}
    for pid in job_processes(job.name):
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            above, own = (Path(f"/proc/{x}/cmdline").read_bytes() for x in (parent, pid))
            rank = re.search(rb"PMI_RANK=(\d+)", Path(f"/proc/{pid}/environ").read_bytes())
            if above == own and rank:
                found[int(rank[1])] = pid
    return found


def version_of(path: Path) -> tuple[int, int] | None:
    """Return something that changes whenever the file is written again; None: there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def wait_for_writes(job: Job, path: Path, count: int) -> bool:
    """Wait until a file has been written again `count` times; return whether the job still runs."""
    for _ in range(count):
        before = version_of(path)
        if not job.wait_until(lambda before=before: version_of(path) != before):
            return False
    return True
