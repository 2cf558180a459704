"""One rank of the measurement: seconds and wire bytes of all-reduces (`run.py` starts it).

    mpiexec -n 5 python -m mpi4py benchmarks/network/measure.py --workers 4 --bytes 1024 65536

For every size and algorithm rank 0 prints one line of JSON: seconds of each repeat, by the slowest
rank, and the bytes that left all ranks' `eth0` for one all-reduce. Workers are ranks 0…n-1, but
for `ps`, whose server is rank 0, and which needs a rank more. Ranks without work sleep.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from formulas import ALGORITHMS
from mpi4py import MPI

from actionspan.parallel.communicator import Patience
from actionspan.parallel.exchange import make_exchange
from actionspan.parallel.settings import ParallelSettings

WARM_UPS = 1
# The emulated hosts share the cores of one machine: a rank that keeps asking, as it may on a
# machine of its own, would take the core from a host that has work. What MPI_Allreduce does inside
# is out of reach of this.
Patience.seconds = 5e-5


def sent_bytes() -> int:
    """Return the bytes that have left this process's host, or 0 where there is no `eth0`."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        device, _, counters = line.partition(":")
        if device.strip() == "eth0":
            return int(counters.split()[8])
    return 0


def measure(algorithm: str, comm: Any, size: int, repeats: int) -> dict[str, object]:
    """Return what rank 0 prints for one algorithm and size; all ranks of `comm` call it."""
    exchange = make_exchange(algorithm, comm, ParallelSettings())
    served = int(algorithm == "ps")
    workers = comm.Get_size() - served
    tensor = torch.empty(size // 4)
    seconds, sent = [], 0
    for repeat in range(WARM_UPS + repeats):
        tensor.fill_(comm.Get_rank() + 1 - served)
        comm.Barrier()
        if repeat == WARM_UPS:
            sent = sent_bytes()
        started = time.perf_counter()
        exchange.allreduce(tensor)
        seconds.append(time.perf_counter() - started)
        if not (tensor == workers * (workers + 1) // 2).all():
            raise ArithmeticError(f"{algorithm} made a wrong sum of {size} bytes")
    comm.Barrier()
    sent = comm.allreduce(sent_bytes() - sent)
    slowest = [max(ranks) for ranks in zip(*comm.allgather(seconds[WARM_UPS:]), strict=True)]
    return {
        "algorithm": algorithm,
        "ranks": workers,
        "bytes": size,
        "seconds": slowest,
        "wire_bytes": sent // repeats,
    }


def sleep_until_all_are_here() -> None:
    """Wait for all ranks of the job without taking their cores."""
    here = MPI.COMM_WORLD.Ibarrier()
    while not here.Test():
        time.sleep(0.005)


def main() -> None:
    """Measure every size with every algorithm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--bytes", type=int, nargs="+", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    world, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.Get_rank()
    for size in arguments.bytes:
        for algorithm in arguments.algorithms:
            takes_part = rank < arguments.workers + (algorithm == "ps")
            comm = world.Split(0 if takes_part else MPI.UNDEFINED, rank)
            if takes_part:
                result = measure(algorithm, comm, size, arguments.repeats)
                comm.Free()
                if rank == 0:
                    print(json.dumps(result), flush=True)
            sleep_until_all_are_here()


if __name__ == "__main__":
    main()
