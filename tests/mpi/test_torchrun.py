"""Ranks that torchrun starts train as those of mpiexec do, where gloo carries the sums."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from actionspan.errors import InputError
from actionspan.parallel.communicator import TorchrunCommunicator, received_notes
from actionspan.parallel.launch import join
from actionspan.storage.model_files import read_model
from mpi.conftest import end_job
from temporal.conftest import Toy, write_toy
from worlds.waiting import eventually

TRAIN = ["-m", "actionspan", "temporal", "train", "--model", "mtn", "--threads", "1"]
PROGRAM = Path(sys.executable).with_name("torchrun")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return write_toy(tmp_path_factory.mktemp("toy"))


def words(toy: Toy, out: Path, epochs: int) -> list[str]:
    files = ["--features", toy.features, "--annotations", toy.annotations, "--out", out]
    return [str(w) for w in (*TRAIN, *files, "--exchange", "gloo", "--epochs", epochs)]


def torchrun(ranks: int, *arguments: str, log: Path) -> "subprocess.Popen[str]":
    command = [PROGRAM, "--nproc-per-node", str(ranks), "--no-python", sys.executable]
    return subprocess.Popen(
        [*command, *arguments, "--ranks", "2"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=log.open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )


def finish(job: "subprocess.Popen[str]", log: Path) -> tuple[int, str]:
    try:
        return job.wait(timeout=150), log.read_text()
    finally:
        end_job(job, "")


@pytest.mark.full
def test_bits_are_those_of_mpiexec(mpirun, toy, tmp_path):
    mpirun(2, words(toy, tmp_path / "mpi", 3), "--ranks", 2, timeout=150)
    log = tmp_path / "log"
    status, output = finish(torchrun(2, *words(toy, tmp_path / "torchrun", 3), log=log), log)
    assert status == 0, output
    states = [
        read_model(tmp_path / way / "model.safetensors").value["state_dict"]
        for way in ("mpi", "torchrun")
    ]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.full
def test_a_stopped_rank_is_named_and_the_job_ends(toy, tmp_path):
    log = tmp_path / "log"
    long = [*words(toy, tmp_path / "out", 5000), "--stall-seconds", "5"]
    job = torchrun(2, *long, log=log)
    try:
        eventually(lambda: "1 worker (pid" in log.read_text(), 120, log.read_text)
        stopped = int(re.findall(r"1 worker \(pid (\d+)", log.read_text())[0])
        eventually((tmp_path / "out" / ".checkpoint.pt").exists, 120, log.read_text)
        os.kill(stopped, signal.SIGSTOP)
        line = "stalled: rank 1 did not come to the exchange of"
        eventually(lambda: line in log.read_text(), 120, log.read_text)
        os.kill(stopped, signal.SIGKILL)  # torchrun waits 30 s for a stopped process
        status, _ = finish(job, log)
    finally:
        end_job(job, "")
    assert status != 0


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> TorchrunCommunicator:
    """The only rank of a job of torchrun, whose store is its own."""
    own = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    for name, value in {**own, "TORCHELASTIC_RUN_ID": "none"}.items():
        monkeypatch.setenv(name, value)
    return TorchrunCommunicator()


def test_collective_calls_leave_nothing_in_the_store(alone):
    before = alone._store.num_keys()
    held = bytearray(b"abc")
    alone.Bcast(held, root=0)
    assert held == b"abc"
    assert alone.bcast({"a": 1}, root=0) == {"a": 1}
    assert alone.scatter([5], root=0) == 5
    assert alone.gather(6, root=0) == [6]
    assert alone.allgather(7) == [7]
    alone.Isend(b"w", 0, 3)
    alone.Isend(b"w", 0, 3)
    assert list(received_notes(alone, 3)) == [0, 0]
    assert list(received_notes(alone, 3)) == []
    assert alone._store.num_keys() == before


def test_what_torchrun_cannot_do_is_one_line(alone):
    with pytest.raises(InputError, match=r"torchrun starts ranks for the exchanges gloo and nccl"):
        alone.Irecv(bytearray(1), 0, 0)
    with pytest.raises(InputError, match=r"2 processes are needed, 1 started: torchrun --nproc"):
        join("temporal train", "gloo", "--ranks", 2)
