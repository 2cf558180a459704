"""A rank that is killed while it starts is named too."""

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
