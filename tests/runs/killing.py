"""Runs of the workflow that are killed at seeded moments, and started again by the same command."""

import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mpi.conftest import MARK, job_processes

WAYS = (
    "snakemake",  # SIGKILL to Snakemake alone
    "group",  # SIGKILL to all processes
    "any",  # SIGKILL to one process below Snakemake: a shell, a job, a worker, a launcher, a rank
    "interrupt",  # Ctrl-C twice
    "hangup",  # the terminal is closed
)
LATEST_SECONDS = 1.5  # after the job that a kill waits for has begun
# what depends on nothing but the inputs: no times of day, no seconds
COMPARED = ("*.h5", "*.pt", "*.csv", "*.vtt", "proposals.json", "videos.tsv", "annotations.json")


@dataclass(frozen=True)
class Kill:
    way: str
    victim: str
    """The command of the process, its first words; empty: the run had ended by itself."""
    run: "Run"
    """The run it was done to."""


@dataclass
class Outcome:
    """What came of a run under kills."""

    kills: list[Kill] = field(default_factory=list)
    status: int = -1
    """Of the last start, which nobody disturbed."""
    said: str = ""
    digests: dict[str, str] = field(default_factory=dict)
    """Of the results, by path."""
    left: list[str] = field(default_factory=list)
    """Commands of killed runs that lived on for seconds, though nobody started anything."""

    def tried(self) -> int:
        return sum(bool(kill.victim) for kill in self.kills)


def begin_again(whole: Path, folder: Path) -> Path:
    """Copy a whole run of the workflow without a shard, the model `origin` and what needs them."""
    shutil.copytree(whole, folder, symlinks=True)
    results = folder / "results"
    gone = [min((results / "features/shards").glob("*.h5")), results / "features/features.h5"]
    gone += [results / "temporal/origin", results / "proposals/origin"]
    for path in (*gone, *(results / "evaluation").glob("origin*")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def kill_run(
    folder: Path, command: Sequence[str], seed: int, ways: Sequence[str] = WAYS
) -> Outcome:
    """Start a command, kill it in each of these ways, start it again, and let it finish.

    The moments are drawn with the seed: while Snakemake starts, or after some job has begun. Half
    of the time the next start comes at once, while jobs of the killed run may be about to end.

    Args:
        folder: Where it runs: a checkout, with the state to begin from.
        command: The words of `snakemake …` or `actionspan run …`, the same each time.
        seed: Of the moments and victims.
        ways: Of WAYS, one a start.
    """
    chance, outcome = random.Random(seed), Outcome()
    for way in ways:
        kill = _start_and_kill(folder, command, way, chance)
        outcome.kills.append(kill)
        if chance.random() < 0.5:
            outcome.left += kill.run.left()
    run = Run(folder, command)
    outcome.status, outcome.said = run.end(600), run.said()
    outcome.left += [
        words for one in (*(kill.run for kill in outcome.kills), run) for words in one.left()
    ]
    outcome.digests = digests(folder)
    return outcome


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each result that has to be the same bits, by path."""
    paths = [path for name in COMPARED for path in (folder / "results").rglob(name)]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
    }


def _start_and_kill(folder: Path, command: Sequence[str], way: str, chance: random.Random) -> Kill:
    jobs, late = chance.randint(0, 2), chance.uniform(0, LATEST_SECONDS)
    run = Run(folder, command)
    run.wait_for_jobs(jobs)
    time.sleep(late)
    victim = ""
    if run.process.poll() is None:
        pid = run.process.pid
        victim = words_of(pid)
        if way == "snakemake":
            os.kill(pid, signal.SIGKILL)
        elif way == "group":
            run.signal_all(signal.SIGKILL)
        elif way == "interrupt":
            os.killpg(pid, signal.SIGINT)
            time.sleep(chance.uniform(0.1, 1.5))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGINT)
        elif way == "hangup":
            os.killpg(pid, signal.SIGHUP)
        else:
            below = sorted(set(run.processes()) - {pid})
            chosen = chance.choice(below) if below else pid
            victim = words_of(chosen)
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen, signal.SIGKILL)
    run.end(300)
    return Kill(way, victim, run)


def words_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return " ".join(word.decode(errors="replace") for word in words)[:200] or "?"
    return "?"


class Run:
    """A command in a session of its own, all its processes marked in their environment."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self.name = uuid.uuid4().hex
        self.log = folder / f"said-{self.name}.txt"
        with self.log.open("w") as file:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env={
                    **os.environ,
                    MARK: self.name,
                    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                    "PYTHONPATH": str(folder / "src"),
                },
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def processes(self) -> list[int]:
        return job_processes(self.name)

    def wait_for_jobs(self, count: int) -> None:
        while (
            self.process.poll() is None
            and len(re.findall(r"^\[\d+/\d+\] ", self.said(), re.M)) < count
        ):
            time.sleep(0.02)

    def signal_all(self, number: int) -> None:
        """Signal every process, also those that have a group of their own."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self, seconds: float) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal_all(signal.SIGKILL)
            raise AssertionError(f"it hangs:\n{self.said()[-3000:]}") from None

    def left(self, seconds: float = 10) -> list[str]:
        """Wait for the end of all processes; return those that do not end."""
        deadline = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        words = [words_of(pid) for pid in left]
        self.signal_all(signal.SIGKILL)
        return words
