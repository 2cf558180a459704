"""A rank that is killed is named, while it starts and where a library exchanges for the others."""

import os
import random
import signal
import time

import pytest

from mpi.fault_runs import MPIRUN, Job, ranks_of, training
from temporal.conftest import Toy, write_toy

pytestmark = pytest.mark.skipif(not MPIRUN.exists(), reason=f"no {MPIRUN}; pip install mpich")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return write_toy(tmp_path_factory.mktemp("toy"), training=16, validation=6)


@pytest.mark.parametrize("seconds", [0.05, 0.4, 1.2])
def test_a_rank_killed_at_the_start_is_named(toy, tmp_path, seconds):
    job = Job(2, training(toy, tmp_path / "out", "ring", 2), tmp_path / "log", None)
    assert job.wait_until(lambda: len(ranks_of(job)) == 2)
    time.sleep(seconds)
    rank, pid = random.Random(seconds).choice(sorted(ranks_of(job).items()))
    os.kill(pid, signal.SIGKILL)
    done = job.end()
    assert done.status
    (line,) = done.lines()
    assert line.startswith(f"actionspan temporal: rank {rank} (pid {pid} on ")
    assert not done.left


@pytest.mark.parametrize("exchange", ["gloo", "periodic"])
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_rank_gives_no_traceback_of_the_others(toy, tmp_path, exchange, killed):
    """gloo tells the survivors of the lost connection before anyone ends them."""
    job = Job(
        2, training(toy, tmp_path / "out", exchange, 2), tmp_path / "log", f"kill@step:{killed}:9"
    )
    done = job.end()
    assert done.status
    assert "Traceback" not in done.errors
    named = [line for line in done.lines() if f"rank {killed} (pid" in line]
    others = [line for line in done.lines() if line not in named]
    assert len(named) == 1
    assert all(f"rank {1 - killed}: another rank is gone" in line for line in others)
    assert not done.left
