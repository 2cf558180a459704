"""A SLURM of two nodes for these tests alone, and the tiny project that runs on it."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from mpi.conftest import kill_all, processes_with
from runs.conftest import copy_program

HERE = Path(__file__).parent
COMMANDS = ("slurmctld", "slurmd", "sbatch", "srun", "sinfo", "munged", "unshare")
PLUGINS = ("snakemake_executor_plugin_slurm", "snakemake_executor_plugin_cluster_generic")

TINY = {
    "demo": {"videos": 6, "shortest_seconds": 5.0, "longest_seconds": 7.0},
    "dataset": {"videos_per_shard": 3},
    "features": {"rescale": {"components": 8}},
    "temporal": {
        "models": ["mtn"],
        "exchange": "ring",
        "ranks": 2,
        "training": {"epochs": 2, "hidden": 32},
    },
    "proposals": {"evaluator": {"epochs": 2}},
    "evaluation": {"timelines": 0, "baselines": ["random"]},
    "cluster": {"max_runtime": 60},
}


@dataclass
class Run:
    """Snakemake at work."""

    process: "subprocess.Popen[str]"
    output: Path

    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def end(self, timeout: float = 1200) -> int:
        """Wait for the end; return the exit status."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(f"it takes more than {timeout} s\n{self.text()[-5000:]}")

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Cluster:
    """Two nodes, c1 and c2, of all cores each; partition main of an hour, short of five minutes."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": path}

    def __call__(self, *words: str) -> str:
        """Run a command of SLURM and return what it prints."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    @property
    def cores(self) -> int:
        """Of each node."""
        return int(self("sinfo", "--noheader", "--partition=main", "--format=%c").split()[0])

    def running(self) -> str:
        """Return the number of the job that runs; empty if none does."""
        return self("squeue", "--noheader", "--states=RUNNING", "--format=%i").strip()

    def snakemake(self, folder: Path, *words: str, profile: str = "slurm") -> Run:
        """Start Snakemake in a project as a person on the login node does."""
        (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
        command = [sys.executable, "-m", "snakemake", *words]
        command += ["--workflow-profile", f"workflow/profiles/{profile}"]
        # impatient, and the demo's four threads are more than a small machine has
        command += ["--seconds-between-status-checks", "2", "--set-threads", "dataset_demo=1"]
        if profile == "slurm":
            command += ["--slurm-init-seconds-before-status-checks", "2"]
        if "--configfile" not in words:
            command += ["--configfile", "tiny.yaml"]
        output = folder / f"snakemake.{time.monotonic_ns()}.log"
        with output.open("w") as file:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**self.environment, "PYTHONPATH": str(folder / "src")},
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        return Run(process, output)


def wait_for(what: Callable[[], str], otherwise: Callable[[], str], timeout: float = 300) -> str:
    """Return what a function returns as soon as that is not empty; else say what is wrong."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.2)
    pytest.fail(otherwise())


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("SLURM is started by root, on Linux")
    if missing := [name for name in COMMANDS if shutil.which(name) is None]:
        pytest.skip(f"no SLURM can be started: {', '.join(missing)} missing (docs/cluster.md)")
    if missing := [name for name in PLUGINS if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} missing: pip install 'actionspan[slurm]'")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # short: it holds a socket
    try:
        done = subprocess.run([HERE / "cluster_up.sh", folder], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"SLURM does not start here: {done.stderr[-600:]}")
        yield Cluster(folder)
    finally:
        subprocess.run([HERE / "cluster_down.sh", folder], capture_output=True)
        # nodes without cgroups leave jobs' processes that do not end by themselves
        kill_all(processes_with("SLURM_CONF", f"{folder}/slurm.conf"))
        shutil.rmtree(folder)


def run_locally(folder: Path, *words: str) -> None:
    """Run Snakemake on this machine alone."""
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    words = (*words, *(() if "--configfile" in words else ("--configfile", "tiny.yaml")))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *words],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def local(tmp_path_factory) -> Path:
    """The tiny project after a whole run on this machine."""
    folder = copy_program(tmp_path_factory.mktemp("local")).folder
    run_locally(folder)
    return folder


@pytest.fixture(scope="session")
def remote(cluster, tmp_path_factory) -> tuple[Path, str]:
    """The tiny project after a whole run on the two nodes, and what Snakemake printed."""
    folder = copy_program(tmp_path_factory.mktemp("remote")).folder
    run = cluster.snakemake(folder, "--set-resources", "temporal_train:nodes=2")
    assert run.end() == 0, run.text()
    return folder, run.text()
