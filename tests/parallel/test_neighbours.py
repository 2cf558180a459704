"""The ring that reads in its left neighbour's memory, and the memory that neighbours share."""

import sys
import threading
from pathlib import Path
from queue import SimpleQueue

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.parallel.communicator import CountingCommunicator
from actionspan.parallel.neighbours import _mapped, shared_zeros
from actionspan.parallel.ring import ring_allreduce
from mpi.allreduce_oracle import ordered_sum, worker_input

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="anonymous files are Linux's")
WIDE = st.sampled_from([torch.float32, torch.float64])


class Arriving:
    def __init__(self, box):
        self.box = box

    def Test(self):
        if self.box.empty():
            return False
        self.box.get()
        return True


class Sent:
    def Test(self):
        return True


class Thread:
    """The calls of a communicator that empty messages need, for ranks that are threads."""

    def __init__(self, rank, size, boxes):
        self.rank, self.size, self.boxes = rank, size, boxes

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def Isend(self, buf, dest, tag):
        assert len(buf) == 0
        self.boxes[self.rank, dest, tag].put(None)
        return Sent()

    def Irecv(self, buf, source, tag):
        assert len(buf) == 0
        return Arriving(self.boxes[source, self.rank, tag])


def ring_of_threads(inputs, times, bucket):
    """Return what each rank has after each of some all-reduces in a row, and its counts."""
    size = len(inputs)
    boxes = {
        (one, other, tag): SimpleQueue()
        for one in range(size)
        for other in range(size)
        for tag in range(5 * (bucket + 1))
    }
    memory = [torch.empty_like(values) for values in inputs]
    results = [[] for _ in inputs]
    comms = [CountingCommunicator(Thread(rank, size, boxes)) for rank in range(size)]

    def work(rank):
        for _ in range(times):
            memory[rank].copy_(inputs[rank])  # at once, whatever the neighbours do
            ring_allreduce(memory[rank], comms[rank], bucket=bucket, left=memory[rank - 1])
            results[rank].append(memory[rank].clone())

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(box.empty() for box in boxes.values()), "a message that nobody waits for"
    return results, comms


@given(st.integers(1, 6), st.integers(0, 300), WIDE, st.integers(1, 3), st.integers(0, 2))
def test_bits_are_those_of_the_ring_of_messages_and_what_is_read_counts_as_sent_and_received(
    size, length, dtype, times, bucket
):
    inputs = [worker_input(rank, length, dtype) for rank in range(size)]
    results, comms = ring_of_threads(inputs, times, bucket)
    expected = ordered_sum("ring", inputs, None)
    assert all(torch.equal(each, expected) for rank in results for each in rank)
    block = [length * (b + 1) // size - length * b // size for b in range(size)]
    for rank, comm in enumerate(comms if size > 1 else ()):
        left, right = (rank - 1) % size, (rank + 1) % size
        scattered, gathered, received = (
            (length - block[number % size]) * dtype.itemsize * times
            for number in (rank + 1, rank + 2, rank)
        )
        sent = comm.sent_bytes
        assert (sent[right, "scatter"], sent[right, "gather"]) == (scattered, gathered)
        assert comm.received_bytes[left, "scatter"] == received
        assert comm.received_bytes[left, "gather"] == scattered


class Alone:
    """A communicator of one rank, its own left neighbour."""

    def Get_rank(self):
        return 0

    def allgather(self, value):
        return [value]


@on_linux
def test_what_one_rank_writes_the_other_reads():
    before = len(list(Path("/proc/self/fd").iterdir()))
    own, left = shared_zeros(1000, torch.float64, Alone())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert torch.equal(left, torch.zeros(1000, dtype=torch.float64))
    own.copy_(torch.arange(1000))
    assert torch.equal(left, torch.arange(1000, dtype=torch.float64))
    assert own.data_ptr() != left.data_ptr()


@on_linux
def test_a_file_of_another_name_is_left_alone(tmp_path):
    """On another machine a process of the same number has other files."""
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with path.open("r+b") as file:
        place = f"/proc/self/fd/{file.fileno()} actionspan-0123"
        assert _mapped(place, 1000, torch.float32) is None
    assert path.read_bytes() == b"abc"


@on_linux
def test_a_process_that_is_not_here_has_no_memory():
    assert _mapped("/proc/0/fd/3 actionspan-0123", 1000, torch.float32) is None
