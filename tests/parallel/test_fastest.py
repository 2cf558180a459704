"""Which exchange `auto` takes: by the bytes, as measured once and kept."""

from functools import partial

import pytest
import torch

from actionspan.parallel import fastest
from actionspan.parallel.communicator import Exchange
from actionspan.parallel.exchange import make_exchange
from actionspan.parallel.fastest import SIZES, BySize, keep, kept, measure
from actionspan.parallel.settings import ParallelSettings
from actionspan.parallel.transfer import zeros

NAMES = dict.fromkeys(("ring", "mpi", "ps_sharded"))
TABLE = [(0, "mpi"), (1000, "ring")]


class Clock:
    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


class Taking(Exchange):
    """An exchange that takes so many seconds and so many more a byte."""

    def __init__(self, clock, seconds, per_byte):
        self.clock, self.seconds, self.per_byte, self.calls = clock, seconds, per_byte, []

    def allreduce(self, tensor, bucket=0):
        self.calls.append((tensor.nbytes, bucket))
        self.clock.now += self.seconds + self.per_byte * tensor.nbytes


class Alone:
    """A communicator that tells of a second rank, for which exchanges take some seconds longer."""

    def __init__(self, *longer):
        self.longer = longer

    def bcast(self, value, root):
        return value

    def allgather(self, value):
        if value is None:
            return [None, None]
        other = [
            [one + more for one, more in zip(turn, self.longer, strict=True)] for turn in value
        ]
        return [value, other]


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(fastest, "time", clock := Clock())
    return clock


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ACTIONSPAN_CACHE", str(tmp_path))


def test_small_tensors_go_by_latency_and_large_ones_by_bandwidth(clock):
    exchanges = {"ring": Taking(clock, 1e-4, 1e-10), "mpi": Taking(clock, 1e-5, 1e-9)}
    # alike at 100,000 bytes
    measured = [(size // 3, "ring" if size > 100_000 else "mpi") for size in reversed(SIZES[:-1])]
    expected = [(0, "mpi"), *measured]
    assert measure(exchanges, Alone(0, 0), zeros) == expected


def test_the_slowest_rank_counts(clock):
    exchanges = {"ring": Taking(clock, 1e-4, 0), "mpi": Taking(clock, 1e-5, 0)}
    assert {name for _, name in measure(exchanges, Alone(0, 0), zeros)} == {"mpi"}
    assert {name for _, name in measure(exchanges, Alone(0, 1e-3), zeros)} == {"ring"}


def test_the_best_turn_counts(clock):
    class Warming(Taking):
        def allreduce(self, tensor, bucket=0):
            super().allreduce(tensor)
            self.clock.now += 1.0 * (self.calls.count((tensor.nbytes, 0)) == 1)

    exchanges = {"ring": Warming(clock, 1e-5, 0), "mpi": Taking(clock, 1e-4, 0)}
    assert {name for _, name in measure(exchanges, Alone(0, 0), zeros)} == {"ring"}


@pytest.mark.parametrize(("seconds", "sizes"), [(1e-4, 5), (0.01, 5), (0.05, 2), (10.0, 1)])
def test_time_is_limited_and_the_largest_size_is_measured_first(clock, seconds, sizes):
    exchanges = {"ring": Taking(clock, seconds, 0), "mpi": Taking(clock, seconds / 2, 0)}
    table = measure(exchanges, Alone(0, 0), zeros)
    assert [least for least, _ in table] == [0, *(size // 3 for size in SIZES[: sizes - 1][::-1])]
    assert {nbytes for nbytes, _ in exchanges["ring"].calls} == set(SIZES[:sizes])
    assert clock.now <= max(0.4 + 5 * 1.5 * seconds, sizes * 5 * 1.5 * seconds)


def test_a_tensor_goes_by_the_exchange_of_its_bytes(clock):
    exchanges = {"mpi": Taking(clock, 0, 0), "ring": Taking(clock, 0, 0)}
    by_size = BySize(exchanges, TABLE, zeros)
    for values in (0, 1, 249, 250, 10_000):
        by_size.allreduce(torch.zeros(values), 7)
    assert exchanges["mpi"].calls == [(0, 7), (4, 7), (996, 7)]
    assert exchanges["ring"].calls == [(1000, 7), (40_000, 7)]


def test_a_table_is_kept_for_its_digest_and_where_its_exchanges_are_there():
    assert kept("0123", NAMES) is None
    keep("0123", TABLE)
    assert (kept("0123", NAMES), kept("4567", NAMES)) == (TABLE, None)
    keep("0123", [(0, "carrier pigeon")])
    assert kept("0123", NAMES) is None


class Doubling:
    """A communicator of two ranks that hold the same values."""

    def Allreduce(self, sendbuf, recvbuf, op):
        recvbuf *= 2


@pytest.mark.parametrize("bound", [False, True])
def test_mpi_sums_where_the_values_lie(bound):
    pytest.importorskip("mpi4py.MPI")
    exchange = make_exchange("mpi", Doubling(), ParallelSettings())
    auto = BySize({"mpi": exchange}, [(0, "mpi")], zeros)
    values, half = torch.ones(4, requires_grad=True), torch.ones(4, dtype=torch.float16)
    for tensor in (values, values[:2], values.view(2, 2), half, half, values[:0]):
        call = auto.bind(tensor) if bound else partial(auto.allreduce, tensor)
        call()
    assert values.tolist() == [8, 8, 4, 4]
    assert half.tolist() == [4, 4, 4, 4]
    for tensor in (values.view(2, 2).t(), values.detach().view(torch.int32)):
        with pytest.raises(ValueError, match=r"contiguous|one of"):
            (auto.bind(tensor) if bound else partial(auto.allreduce, tensor))()


def test_a_bound_call_sums_the_values_of_its_time():
    pytest.importorskip("mpi4py.MPI")
    values = torch.ones(3)
    call = make_exchange("mpi", Doubling(), ParallelSettings()).bind(values)
    call()
    values += torch.tensor([1.0, 2.0, 3.0])
    call()
    assert values.tolist() == [6, 8, 10]
