"""Over real MPI: ranks of one machine read one another's buckets; `auto` chooses once for all."""

import json
import sys

import pytest

from actionspan.parallel.watchdog import STALLED
from tiers import first_tier

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="anonymous files are Linux's")

SUMS = """
import json, os, sys
import torch
from actionspan.parallel import CountingCommunicator
from actionspan.parallel.exchange import RingExchange
from actionspan.parallel.launch import world
from mpi.allreduce_oracle import ordered_sum, worker_input
from mpi.ranks import first_ranks, sleep_until_all_are_here

BLIND, WIRE = int(sys.argv[1]), getattr(torch, sys.argv[2], None)
CPU = torch.device("cpu")

class Weighing:  # what MPI itself carries
    def __init__(self, comm):
        self.comm, self.bytes = comm, 0

    def Isend(self, buf, dest, tag):
        self.bytes += memoryview(buf).nbytes
        return self.comm.Isend(buf, dest, tag)

    def __getattr__(self, name):
        return getattr(self.comm, name)

everyone = world()
rank, comms = everyone.Get_rank(), first_ranks(everyone)
if rank == BLIND:
    del os.memfd_create
torch.set_num_threads(1)
for n in range(1, everyone.Get_size() + 1):
    if rank < n:
        weighing = Weighing(comms[n])
        counting = CountingCommunicator(weighing)
        ring = RingExchange(counting, WIRE, False)
        right = True
        for kind in (torch.float32, torch.float64, torch.bfloat16):
            for size in (0, 1, n - 1, n + 1, 10_007, 300_001):
                inputs = [worker_input(each, size, kind) for each in range(n)]
                expected = ordered_sum("ring", inputs, WIRE)
                room = ring.room(size, kind, CPU)
                assert not room.any()
                for times in range(3):  # in a row: values change as soon as they may
                    part = room if times < 2 or size < 10_000 else room[: size // 2]
                    part.copy_(inputs[rank][: len(part)])
                    counting.reset()
                    before = weighing.bytes
                    ring.allreduce(part, times)
                    if len(part) < size:
                        expected = ordered_sum("ring", [one[: len(part)] for one in inputs], WIRE)
                    right &= torch.equal(part, expected)
                carried = weighing.bytes - before
                if kind != torch.bfloat16 and size == 10_007:
                    row = [str(kind), counting.total_sent(), carried]
                    rows = comms[n].gather(row, root=0)
                    if rank == 0:
                        line = {"n": n, "rows": [row[1:] for row in rows], "kind": rows[0][0]}
                        print(json.dumps(line), flush=True)
        if WIRE is None and n > 1:  # another type, in the same place
            part = ring.room(500, torch.float64, CPU).view(torch.float16).fill_(1)
            ring.allreduce(part)
            right &= bool((part == n).all())
        assert all(comms[n].allgather(right)), n
    sleep_until_all_are_here(everyone)
"""


def sums(mpirun, ranks, blind=-1, wire="none"):
    lines = mpirun(ranks, ["-c", SUMS], blind, wire, timeout=120).stdout.splitlines()
    return {(row["n"], row["kind"]): row["rows"] for row in map(json.loads, lines)}


def formula(n, values, itemsize):
    """Return the bytes that each rank of the ring sends."""
    block = [values * (b + 1) // n - values * b // n for b in range(n)]
    return [
        itemsize * (2 * values - block[(rank + 1) % n] - block[(rank + 2) % n]) if n > 1 else 0
        for rank in range(n)
    ]


@pytest.mark.parametrize("ranks", first_tier([4, 7], 4))
def test_bits_are_the_rings_and_mpi_carries_nothing(mpirun, ranks):
    found = sums(mpirun, ranks)
    assert len(found) == 2 * ranks
    for (n, kind), rows in found.items():
        itemsize = {"torch.float32": 4, "torch.float64": 8}[kind]
        assert [counted for counted, _ in rows] == formula(n, 5003, itemsize)
        assert {carried for _, carried in rows} == {0}


@pytest.mark.parametrize(
    ("blind", "wire"), first_tier([(1, "none"), (-1, "bfloat16")], (1, "none"))
)
def test_messages_carry_what_cannot_be_read_in_place(mpirun, blind, wire):
    """A rank without anonymous files, or values that travel in another type."""
    found = sums(mpirun, 3, blind, wire)
    assert len(found) == 6
    for (n, kind), rows in found.items():
        itemsize = {"torch.float32": 4, "torch.float64": 8}[kind] if wire == "none" else 2
        carried = formula(n, 5003, itemsize)
        if not (wire == "none" and n == 1):
            assert [list(row) for row in rows] == [[each, each] for each in carried], (n, kind)


BUCKETS = """
import torch
from actionspan.parallel import ParallelSettings, make_replica
from actionspan.parallel.launch import world

comm = world()
model = torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.Linear(30, 20))
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
for name in ("ring", "auto"):
    replica = make_replica(name, model, optimiser, ParallelSettings(bucket_kib=1), comm)
    model(torch.ones(2, 40)).sum().backward()
    replica.step()
    ring = replica.exchange if name == "ring" else replica.exchange.exchanges["ring"]
    places = {parameter.grad.untyped_storage().data_ptr() for parameter in model.parameters()}
    assert len(places) > 1 and places <= ring._rooms.keys()
    replica.close()
"""


def test_a_models_gradients_lie_where_the_neighbour_reads_them(mpirun):
    mpirun(2, ["-c", BUCKETS])


AUTO = """
import os, sys
from actionspan.parallel import ParallelSettings, fastest
from actionspan.parallel.exchange import make_exchange
from actionspan.parallel.launch import world

comm = world()
if comm.Get_rank():
    os.environ["ACTIONSPAN_CACHE"] = sys.argv[2]
if sys.argv[1] == "again":
    fastest.measure = None
made = make_exchange("auto", comm.Dup(), ParallelSettings())
tables = comm.gather(made.table, root=0)
if comm.Get_rank() == 0:
    assert all(table == tables[0] for table in tables)
    print(tables[0], flush=True)
    if sys.argv[1] == "first":
        from mpi4py import MPI

        make_exchange("auto", MPI.COMM_SELF.Dup(), ParallelSettings())
# another job keeps its choice while this one measures
faster = iter([None, [(0, "ps_sharded")]])
fastest.kept = lambda *_: next(faster)
fastest.measure = lambda *_: [(0, "mpi")]
fastest.keep = lambda *_: None
made = make_exchange("auto", comm.Dup(), ParallelSettings())
assert made.table == [(0, "ps_sharded")], made.table
"""


def test_auto_measures_once_and_rank_0s_choice_is_everybodys(mpirun, tmp_path):
    cache = {"ACTIONSPAN_CACHE": str(tmp_path / "first")}
    first = mpirun(2, ["-c", AUTO], "first", tmp_path / "other", env=cache).stdout
    again = mpirun(2, ["-c", AUTO], "again", tmp_path / "other", env=cache).stdout
    assert first == again
    assert first.startswith("[(0, '")
    assert not (tmp_path / "other").exists()
    # two ranks, and one
    assert len(list((tmp_path / "first").iterdir())) == 2


MISSING = """
import time
import torch
from actionspan.parallel import ParallelSettings, make_replica, replica
from actionspan.parallel.launch import world

comm = world()
if comm.Get_rank() == 1:
    replica.CountingCommunicator = lambda _: time.sleep(600)
model = torch.nn.Linear(4, 3)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
make_replica("ring", model, optimiser, ParallelSettings(stall_seconds=1.0), comm)
"""


@pytest.mark.full
def test_a_rank_that_does_not_come_to_place_its_buckets_is_named(mpirun):
    ended = mpirun(3, ["-c", MISSING], check=False, timeout=60)
    assert ended.returncode in (STALLED, 9)
    assert "rank 1 did not come to the exchange of the place of the buckets" in ended.stderr
