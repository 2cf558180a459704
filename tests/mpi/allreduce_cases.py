"""Run by mpirun: every all-reduce of an exchange on the first ranks of a job, as JSON.

Each word is a case, WORKERS:EXCHANGE.
"""

import hashlib
import sys
from functools import partial

import torch

from actionspan.parallel import CountingCommunicator, ParallelSettings
from actionspan.parallel.exchange import TorchAllreduce, make_exchange
from mpi.allreduce_oracle import HALF, TENSORS, error_in_bounds, ordered_sum, worker_input
from mpi.ranks import from_words, run_cases

EXCHANGES = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo")
POINT_TO_POINT = EXCHANGES[:5]
LARGE = 1_100_003  # half of it is more than 2^19, the values of a piece of bfloat16
BAD = {
    "transposed": torch.zeros(4, 3).t(),
    "every second": torch.zeros(8)[::2],
    "int64": torch.zeros(4, dtype=torch.int64),
    "bool": torch.zeros(4, dtype=torch.bool),
    "complex64": torch.zeros(4, dtype=torch.complex64),
}


def cases(workers, exchange):
    """Yield (type of tensor, type on the wire, size)."""
    about = {0, 1, workers - 1, workers, workers + 1}
    # of several pieces of 2 MiB, on two and eight workers each block too
    large = LARGE * len({2, 8} & {workers}) or 550_007
    for kind, most in {"float32": large, "float64": large // 2}.items():
        for size in sorted(about | {most if workers > 1 else 10_007}):
            yield kind, "float32", size
    for kind in ("float16", "bfloat16"):
        for size in sorted({0, 1, workers + 1, 10_007}):
            yield kind, "float32", size
    if exchange in POINT_TO_POINT:
        for wire in ("float16", "bfloat16"):
            for size in (1, workers + 1, 10_007):
                yield "float32", wire, size
    if exchange in POINT_TO_POINT and workers == 2:
        yield "float32", "bfloat16", LARGE


def digest(tensor):
    """Return a fingerprint of a tensor's bits."""
    bits = tensor.view(torch.uint8) if tensor.numel() else torch.empty(0, dtype=torch.uint8)
    return hashlib.blake2b(bits.numpy(), digest_size=8).hexdigest()


def counts(counting):
    """Return rows (way, peer, phase, bytes, messages) of what passed this rank."""
    return sorted(
        (way, peer, phase, byte_counts[peer, phase], messages)
        for way, byte_counts, message_counts in (
            ("sent", counting.sent_bytes, counting.sent_messages),
            ("received", counting.received_bytes, counting.received_messages),
        )
        for (peer, phase), messages in message_counts.items()
    )


def run_case(comm, exchange, counting, summing, kind, size):
    """Return the digests of one sum or two, what the last sent and received, and the sum."""
    rank, served = comm.Get_rank(), exchange == "ps"
    if served and rank == 0:  # what a server's own tensor holds does not count
        own = torch.full((size,), torch.nan, dtype=TENSORS[kind])
    else:
        own = worker_input(rank - served, size, TENSORS[kind])
    digests = []
    for bound in (False, True)[: 2 if kind == "float32" and size > comm.Get_size() else 1]:
        tensor = own.clone()
        call = summing.bind(tensor) if bound else partial(summing.allreduce, tensor)
        counting.reset()
        call()
        digests.append(digest(tensor))
    return digests, counts(counting), tensor if rank == 0 else None


def report(workers, exchange, case, rows, tensor):
    """Return what each rank has of a case, and what the oracle says of rank 0's sum."""
    kind, wire, size = case
    half = None if wire == "float32" else TENSORS[wire]
    inputs = [worker_input(worker, size, TENSORS[kind]) for worker in range(workers)]
    expected = ordered_sum(exchange, inputs, half)
    return {
        "kind": kind,
        "wire": wire,
        "size": size,
        "digests": [digests for digests, *_ in rows],
        "counts": [counted for _, counted, _ in rows],
        "error": error_in_bounds(exchange, workers, half, tensor),
        "expected": None if expected is None else digest(expected),
    }


def refused(summing):
    """Return the bad tensors that are refused with a ValueError."""
    names = []
    for name, tensor in BAD.items():
        try:
            summing.allreduce(tensor)
        except ValueError:
            names.append(name)
    return names


def vanishing(comm, exchange, summing, dtype):
    """Add 0.75 of each other worker to one large value, whose neighbours in `dtype` are 2 away."""
    large = 2 / torch.finfo(dtype).eps
    own = large if comm.Get_rank() == (exchange == "ps") else 0.75
    tensor = torch.full((17,), own, dtype=dtype)
    summing.allreduce(tensor)
    return (tensor - large).tolist()


def run(exchange, comm):
    """Run all cases of one exchange; return rank 0's row."""
    workers = comm.Get_size() - (exchange == "ps")
    made = {}
    for wire in ("float32", "float16", "bfloat16") if exchange in POINT_TO_POINT else ("float32",):
        counting = CountingCommunicator(comm)
        settings = ParallelSettings(wire=wire, auto_kib=64)
        made[wire] = counting, make_exchange(exchange, counting, settings)
    plain = made["float32"][1]
    todo = list(cases(workers, exchange))
    done = [run_case(comm, exchange, *made[wire], kind, size) for kind, wire, size in todo]
    refusals = comm.gather(refused(plain), root=0)
    vanished = [vanishing(comm, exchange, plain, kind) for kind in HALF]
    if isinstance(plain, TorchAllreduce):
        plain.close()
    every = comm.gather([(*row[:2], None) for row in done], root=0)
    if comm.Get_rank():
        return None
    reports = [
        report(workers, exchange, case, [rank[number] for rank in every], done[number][2])
        for number, case in enumerate(todo)
    ]
    return {"cases": reports, "refused": refusals, "vanishing": vanished}


if __name__ == "__main__":
    run_cases(run, from_words(sys.argv[1:]))
