"""Blocks travel in pieces of the length that the caller chooses, and the sum is the same."""

PROGRAM = """
import os
import torch
from mpi4py import MPI
from actionspan.parallel import CountingCommunicator, ParameterServer, ring_allreduce

comm = CountingCommunicator(MPI.COMM_WORLD)
rank = comm.Get_rank()
for piece_bytes in (400, 1 << 20):
    comm.reset()
    values = torch.arange(1000.0) + rank
    ring_allreduce(values, comm, piece_bytes=piece_bytes)
    assert torch.equal(values, 2 * torch.arange(1000.0) + 1)
    ring = sum(comm.sent_messages.values())
    comm.reset()
    values = torch.arange(1000.0) + rank
    ParameterServer(comm, "sharded", piece_bytes=piece_bytes).allreduce(values)
    assert torch.equal(values, 2 * torch.arange(1000.0) + 1)
    server = sum(comm.sent_messages.values())
    os.write(1, f"{piece_bytes} {ring} {server}\\n".encode())
"""


def test_pieces_are_as_long_as_asked(mpirun):
    """500 values of 4 bytes a block: 5 pieces of 400 bytes, in one round there and one back."""
    done = mpirun(2, ["-c", PROGRAM])
    assert sorted(done.stdout.splitlines()) == ["1048576 2 2"] * 2 + ["400 10 10"] * 2
