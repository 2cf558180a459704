"""The emulated cluster: bytes cross the links, and nothing of it is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from worlds.waiting import eventually, gone

NETWORK = Path(__file__).parents[2] / "benchmarks" / "network"

TALK = """
from mpi4py import MPI
world = MPI.COMM_WORLD
mine = bytearray(100_000)
if world.rank == 0:
    world.Send(mine, 1)
elif world.rank == 1:
    world.Recv(mine, 0)
"""

WAIT = """
import signal, sys
sys.path.insert(0, sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
from cluster import Cluster
with Cluster(hosts=2, mbit=100) as cluster:
    print(cluster.name, flush=True)
    cluster.run(["-c", "import time; time.sleep(60)"], ranks=2, must_send=0)
"""


@pytest.fixture
def network(monkeypatch):
    monkeypatch.syspath_prepend(NETWORK)
    import cluster

    return cluster


@pytest.fixture
def testbed(network):
    """The module `cluster`, where a cluster can be made; all of it must be gone afterwards."""
    if reason := network.reason_missing():
        pytest.skip(reason)
    devices = sorted(Path("/sys/class/net").iterdir())
    yield network
    assert network.namespaces(f"{network.PREFIX}-{os.getpid()}-") == []
    assert sorted(Path("/sys/class/net").iterdir()) == devices


def processes_in(network, name: str) -> list[str]:
    spaces = network.namespaces(f"{name}-")
    return [pid for space in spaces for pid in network.ip("netns", "pids", space).split()]


@contextmanager
def waiting(network) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A process with a cluster whose ranks sleep, and the cluster's name."""
    words = [sys.executable, "-c", WAIT, NETWORK]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, stdout=pipe, stderr=null, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        eventually(lambda: len(processes_in(network, name)) >= 5)  # mpiexec, 2 proxies, 2 ranks
        yield process, name


def is_gone(network, name: str) -> bool:
    folders = list(Path(tempfile.gettempdir()).glob(f"{name}-*"))
    return network.namespaces(f"{name}-") == [] and folders == []


def test_the_links_carry_what_the_formula_says_and_headers(testbed):
    import run

    rows = run.measure(
        ranks=2, sizes=[2**18], algorithms=["ring", "ps"], repeats=2, mbit=400, burst=32
    )
    assert [row["payload_bytes"] for row in rows] == [2 * 2**18, 4 * 2**18]
    for row in rows:
        assert 1 < row["wire_bytes"] / row["payload_bytes"] < 1.1
        assert row["label"] == "emulated"


def test_a_link_keeps_its_rate(testbed):
    code = TALK.replace("100_000", "1_000_000")
    with testbed.Cluster(hosts=2, mbit=20) as cluster:
        job = cluster.run(["-c", code], ranks=2, must_send=1_000_000)
    assert job.seconds > 0.4 * 0.95  # 8 Mbit at 20 Mbit/s, less the burst
    assert 1_000_000 < job.sent[0] < 1_200_000
    assert job.sent[1] < 200_000  # acknowledgements, and what mpiexec asks


def test_a_job_that_does_not_use_the_links_is_refused(testbed):
    # both ranks on one host: they talk over its loopback, which no link sees
    refusal = "the job must send 100,000: the ranks did not"
    with (
        testbed.Cluster(hosts=1, mbit=100) as cluster,
        pytest.raises(testbed.WireError, match=refusal),
    ):
        cluster.run(["-c", TALK], ranks=2, must_send=100_000)


def test_a_job_that_fails_says_why_and_leaves_nothing(testbed):
    with testbed.Cluster(hosts=2, mbit=100) as cluster:
        with pytest.raises(RuntimeError, match="no such luck"):
            cluster.run(["-c", "raise SystemExit('no such luck')"], ranks=2, must_send=0)
        with pytest.raises(TimeoutError, match="did not end within 1 s"):
            cluster.run(["-c", "import time; time.sleep(60)"], ranks=2, must_send=0, timeout=1)
        assert processes_in(testbed, cluster.name) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_removes_the_cluster_and_its_processes(testbed, number):
    with waiting(testbed) as (process, name):
        pids = processes_in(testbed, name)
        process.send_signal(number)
        process.wait(timeout=60)
    assert is_gone(testbed, name)
    eventually(lambda: all(map(gone, pids)))


def test_what_a_killed_process_left_is_removed_by_the_next(testbed):
    with waiting(testbed) as (process, name):
        process.kill()
    assert testbed.namespaces(f"{name}-")
    with testbed.Cluster(hosts=1, mbit=100):
        assert is_gone(testbed, name)
