"""Over real MPI: ranks of one machine read one another's buckets; `auto` chooses once for all."""

import json
import sys
from typing import Any

import pytest

from actionspan.parallel.watchdog import STALLED
from tiers import first_tier

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="anonymous files are Linux's")

SUMS = """
import json, os, sys
import torch
from actionspan.parallel import CountingCommunicator
from actionspan.parallel.exchange import RingExchange
from mpi.allreduce_oracle import ordered_sum, worker_input
from mpi.ranks import run_cases

CPU = torch.device("cpu")
make_file = os.memfd_create

class Weighing:  # what MPI itself carries
    def __init__(self, comm):
        self.comm, self.bytes = comm, 0

    def Isend(self, buf, dest, tag):
        self.bytes += memoryview(buf).nbytes
        return self.comm.Isend(buf, dest, tag)

    def __getattr__(self, name):
        return getattr(self.comm, name)

def run(case, comm):
    blind, wire = int(case[0]), getattr(torch, case[1], None)
    rank, n, found = comm.Get_rank(), comm.Get_size(), {}
    if rank == blind:
        del os.memfd_create
    weighing = Weighing(comm)
    counting = CountingCommunicator(weighing)
    ring = RingExchange(counting, wire, False)
    right = True
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        for size in (0, 1, n - 1, n + 1, 10_007, 300_001):
            inputs = [worker_input(each, size, kind) for each in range(n)]
            expected = ordered_sum("ring", inputs, wire)
            room = ring.room(size, kind, CPU)
            assert not room.any()
            for times in range(3):  # in a row: values change as soon as they may
                part = room if times < 2 or size < 10_000 else room[: size // 2]
                part.copy_(inputs[rank][: len(part)])
                counting.reset()
                before = weighing.bytes
                ring.allreduce(part, times)
                if len(part) < size:
                    expected = ordered_sum("ring", [one[: len(part)] for one in inputs], wire)
                right &= torch.equal(part, expected)
            row = counting.total_sent(), weighing.bytes - before
            if kind != torch.bfloat16 and size == 10_007:
                found[str(kind)] = comm.gather(row, root=0)
    if wire is None and n > 1:  # another type, in the same place
        part = ring.room(500, torch.float64, CPU).view(torch.float16).fill_(1)
        ring.allreduce(part)
        right &= bool((part == n).all())
    assert all(comm.allgather(right)), n
    os.memfd_create = make_file
    return {"rows": found} if rank == 0 else None

run_cases(run, [(n, json.dumps([n, *case]), case) for n, *case in map(json.loads, sys.argv[1:])])
"""

IN_PLACE: list[list[Any]] = [[n, -1, "none"] for n in (1, 2, 3, 4, 5, 6, 7)]
CARRIED = [[n, *case] for case in ((1, "none"), (-1, "bfloat16")) for n in (1, 2, 3)]
FIRST = [case for case in IN_PLACE if case[0] < 5] + CARRIED[:3]


def formula(n, values, itemsize):
    block = [values * (b + 1) // n - values * b // n for b in range(n)]
    return [
        itemsize * (2 * values - block[(rank + 1) % n] - block[(rank + 2) % n]) if n > 1 else 0
        for rank in range(n)
    ]


@pytest.fixture(scope="module")
def sums(rows_of, both_tiers):
    words = map(json.dumps, [*IN_PLACE, *CARRIED] if both_tiers else FIRST)
    return rows_of(7 if both_tiers else 4, ["-c", SUMS], *words, timeout=120)


@pytest.mark.parametrize("case", first_tier([*IN_PLACE, *CARRIED], *FIRST), ids=str)
def test_bits_are_the_rings_and_mpi_carries_only_what_cannot_be_read_in_place(sums, case):
    """That is, where a rank has no anonymous files, or values travel in another type."""
    n, _, wire = case
    found = sums[json.dumps(case)]["rows"]
    assert len(found) == 2
    for kind, rows in found.items():
        itemsize = {"torch.float32": 4, "torch.float64": 8}[kind] if wire == "none" else 2
        sent = formula(n, 5003, itemsize)
        carried = [0] * n if case in IN_PLACE else sent
        assert rows == [list(row) for row in zip(sent, carried, strict=True)], kind


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
PIECES = """
import os
import torch
from mpi4py import MPI
from actionspan.parallel import CountingCommunicator, ParameterServer, ring_allreduce

comm = CountingCommunicator(MPI.COMM_WORLD)
for piece_bytes in (400, 1 << 20):
    messages = []
    for sum_up in (ring_allreduce, lambda values, comm, **how: ParameterServer(
        comm, "sharded", **how).allreduce(values)):
        comm.reset()
        values = torch.arange(1000.0) + comm.Get_rank()
        sum_up(values, comm, piece_bytes=piece_bytes)
        assert torch.equal(values, 2 * torch.arange(1000.0) + 1)
        messages.append(sum(comm.sent_messages.values()))
    os.write(1, f"{piece_bytes} {messages}\\n".encode())
"""


def test_gradients_lie_where_the_neighbour_reads_them_and_pieces_are_as_long_as_asked(mpirun):
    """500 values of 4 bytes a block: 5 pieces of 400 bytes, in one round there and one back."""
    done = mpirun(2, ["-c", BUCKETS + PIECES])
    assert sorted(done.stdout.splitlines()) == ["1048576 [2, 2]"] * 2 + ["400 [10, 10]"] * 2


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
    first, again = (
        mpirun(2, ["-c", AUTO], turn, tmp_path / "other",
               env={"ACTIONSPAN_CACHE": str(tmp_path / "first")}).stdout
        for turn in ("first", "again")
    )  # fmt: skip
    assert first == again
    assert first.startswith("[(0, '")
    assert not (tmp_path / "other").exists()
    assert len(list((tmp_path / "first").iterdir())) == 2, "of two ranks, and of one"


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
