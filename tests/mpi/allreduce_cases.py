"""Every exchange over the first 1, 2, … workers of one MPI job; rank 0 prints JSON lines.

mpirun -n 9 python -m mpi4py tests/mpi/allreduce_cases.py
"""

import hashlib
import json

import torch

from actionspan.parallel import CountingCommunicator, ParallelSettings
from actionspan.parallel.exchange import TorchAllreduce, make_exchange
from actionspan.parallel.launch import world
from mpi.allreduce_oracle import HALF, TENSORS, error_in_bounds, ordered_sum, worker_input
from mpi.ranks import first_ranks, sleep_until_all_are_here

EXCHANGES = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo")
POINT_TO_POINT = ("ring", "auto", "ps", "ps_worker", "ps_sharded")
LARGE = 1_000_003


def cases(workers, exchange):
    """Yield (type of tensor, type on the wire, size)."""
    about = {0, 1, workers - 1, workers, workers + 1}
    for kind in ("float32", "float64"):
        for size in sorted(about | {LARGE}):
            yield kind, "float32", size
    for kind in ("float16", "bfloat16"):
        for size in sorted({0, 1, workers + 1, 10_007}):
            yield kind, "float32", size
    if exchange in POINT_TO_POINT:
        for wire in ("float16", "bfloat16"):
            for size in (1, workers + 1, 10_007):
                yield "float32", wire, size
    if exchange in POINT_TO_POINT and workers == 2:
        yield "float32", "bfloat16", 3 * LARGE  # pieces on the wire are of 2^19 values


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


def own_input(comm, exchange, size, dtype):
    """Return this rank's tensor; what a server's own holds does not count."""
    rank, serves = comm.Get_rank(), exchange == "ps"
    if serves and rank == 0:
        return torch.full((size,), torch.nan, dtype=dtype)
    return worker_input(rank - serves, size, dtype)


def run_case(comm, exchange, counting, summing, kind, size):
    """Return the digests of one sum or two, what the last sent and received, and the sum."""
    own = own_input(comm, exchange, size, TENSORS[kind])
    repeats = 2 if kind == "float32" and size > comm.Get_size() else 1
    digests = []
    for _ in range(repeats):
        tensor = own.clone()
        counting.reset()
        summing.allreduce(tensor)
        digests.append(digest(tensor))
    return digests, counts(counting), tensor if comm.Get_rank() == 0 else None


def report(workers, exchange, case, rows, tensor):
    """Return a case's line: what each rank has, and what the oracle says of rank 0's sum."""
    kind, wire, size = case
    half = None if wire == "float32" else TENSORS[wire]
    inputs = [worker_input(worker, size, TENSORS[kind]) for worker in range(workers)]
    expected = ordered_sum(exchange, inputs, half)
    return {
        "workers": workers,
        "exchange": exchange,
        "kind": kind,
        "wire": wire,
        "size": size,
        "digests": [digests for digests, _ in rows],
        "counts": [counted for _, counted in rows],
        "error": error_in_bounds(exchange, workers, half, tensor),
        "expected": None if expected is None else digest(expected),
    }


def refused(comm, exchange, summing):
    """Return for each bad tensor whether every rank refused it with a ValueError."""
    bad = {
        "transposed": torch.zeros(4, 3).t(),
        "every second": torch.zeros(8)[::2],
        "int64": torch.zeros(4, dtype=torch.int64),
        "bool": torch.zeros(4, dtype=torch.bool),
        "complex64": torch.zeros(4, dtype=torch.complex64),
    }
    answers = {}
    for name, tensor in bad.items():
        try:
            summing.allreduce(tensor)
            answers[name] = False
        except ValueError:
            answers[name] = True
    every = comm.gather(answers, root=0)
    if comm.Get_rank():
        return None
    together = {name: all(rank[name] for rank in every) for name in bad}
    return {"ranks": comm.Get_size(), "exchange": exchange, "refused": together}


def vanishing(comm, exchange, summing, dtype):
    """Add 0.75 of each other worker to one large value, whose neighbours in `dtype` are 2 away."""
    rank, serves = comm.Get_rank(), exchange == "ps"
    large = 2 / torch.finfo(dtype).eps
    tensor = torch.full((17,), large if rank == serves else 0.75, dtype=dtype)
    summing.allreduce(tensor)
    name = str(dtype).removeprefix("torch.")
    workers = comm.Get_size() - serves
    values = (tensor - large).tolist()
    return {"workers": workers, "exchange": exchange, "vanishing": name, "values": values}


def run_exchange(comm, exchange):
    """Run all cases of one exchange; return rank 0's lines."""
    workers = comm.Get_size() - (exchange == "ps")
    exchanges = {}
    for wire in ("float32", "float16", "bfloat16"):
        if wire == "float32" or exchange in POINT_TO_POINT:
            counting = CountingCommunicator(comm)
            settings = ParallelSettings(wire=wire, auto_kib=64)
            made = make_exchange(exchange, counting, settings)
            exchanges[wire] = counting, made
    plain = exchanges["float32"][1]
    todo = list(cases(workers, exchange))
    done = [run_case(comm, exchange, *exchanges[wire], kind, size) for kind, wire, size in todo]
    lines = [refused(comm, exchange, plain)]
    if workers in (3, 8) and exchange != "ring":
        lines += [vanishing(comm, exchange, plain, kind) for kind in HALF]
    if isinstance(plain, TorchAllreduce):
        plain.close()
    every = comm.gather([row[:2] for row in done], root=0)
    if comm.Get_rank() == 0:
        for number, (case, (*_, tensor)) in enumerate(zip(todo, done, strict=True)):
            rows = [rank[number] for rank in every]
            lines.append(report(workers, exchange, case, rows, tensor))
    sleep_until_all_are_here(comm)
    return lines


def main():
    """Run all cases; ranks beyond a case's workers sleep."""
    torch.set_num_threads(1)
    everyone = world()
    rank, size = everyone.Get_rank(), everyone.Get_size()
    comms = first_ranks(everyone)
    for workers in range(1, size):
        for exchange in EXCHANGES:
            comm = comms[workers + (exchange == "ps")]
            if rank < workers + (exchange == "ps"):
                lines = run_exchange(comm, exchange)
                if rank == 0:
                    print("\n".join(json.dumps(line) for line in lines), flush=True)
    sleep_until_all_are_here(everyone)


if __name__ == "__main__":
    main()
