"""Exchanges side by side on one machine: seconds of one all-reduce over shared memory.

    python benchmarks/exchange.py --ranks 2 4 --launches 5

Starts `mpiexec` several times for each number of ranks. In a launch all exchanges take turns on
tensors of each size (1 KiB to 64 MiB, and MTN's whole gradient for 256 channels), each time in
another order, so that whatever else the machine does, and what the one before leaves in the caches,
meets them alike; a launch's figure is the median over its turns of the slowest rank's seconds, a
row the median over launches. `ratio` is how many times the ring is as fast, with the range over
launches. `alone` is the same of the turn behind the fastest tenth: on a busy machine other work
interrupts half of the turns, which then measure the scheduler. Each exchange sums tensors that lie
where its buckets do in training. On the CPU the libraries are called directly, without our wrapper:
`MPI.COMM_WORLD` on a NumPy array, `torch.distributed` on a tensor.

MPI_Allreduce takes and frees a buffer in every call, so it matters what the C library does with
freed memory. `limit` is the time of the ring's reads and writes alone, by all ranks at once,
without messages. Launches in which it keeps it (`kept` 1), as in `actionspan temporal train`, and
launches in which it gives large blocks back (0), as in any other program, take turns. With
`--device cuda` the tensors lie on GPUs, over which ranks are spread.
"""

import argparse
import json
import operator
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from actionspan.jobs.memory import keep_freed_memory
from actionspan.networks.runtime import choose_device
from actionspan.parallel.communicator import Exchange
from actionspan.parallel.exchange import make_exchange
from actionspan.parallel.launch import world
from actionspan.parallel.neighbours import Shared, shared_zeros
from actionspan.parallel.settings import ParallelSettings
from actionspan.parallel.transfer import zeros

NAMES = ("ring", "mpi", "gloo", "ps_worker", "ps_sharded", "auto")
MTN_BYTES = 6578552
SIZES = (1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 4 << 20, MTN_BYTES, 16 << 20, 64 << 20)


def measure(keep: bool, device: str) -> None:
    """In an MPI job: print seconds by size and exchange as JSON."""
    torch.set_num_threads(1)
    if keep:
        keep_freed_memory()  # as `actionspan temporal train` does
    comm = world()
    place, between = choose_device(device), comm.Dup()
    exchanges = {name: make_exchange(name, comm.Dup(), ParallelSettings()) for name in NAMES}
    for size in SIZES:
        tensors = {  # as buckets are
            name: getattr(exchange, "room", zeros)(size // 4, torch.float32, place)
            for name, exchange in exchanges.items()
        }
        calls = {name: direct(name, exchanges[name], each) for name, each in tensors.items()}
        shared = shared_zeros(size // 4, torch.float32, comm) if place.type == "cpu" else None
        if shared is not None:
            tensors["limit"], calls["limit"] = shared.own, moved(shared, comm.Get_size())
        turns = 9 if size > 1 << 21 else 101
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(turns):
            # barriers have a communicator of their own: they leave it in the caches
            for name in random.Random(turn).sample(sorted(calls), len(calls)):
                tensors[name].fill_(1.0)
                settle(place)
                between.Barrier()
                begun = time.perf_counter()
                calls[name]()
                settle(place)
                seconds[name].append(time.perf_counter() - begun)
        assert all(float(tensors[name][-1]) == comm.Get_size() for name in NAMES)
        for name, taken in seconds.items():
            slowest = [max(turn) for turn in zip(*comm.allgather(taken), strict=True)]
            if comm.Get_rank() == 0:
                alone = sorted(slowest[1:])[len(slowest) // 10]
                row = {"bytes": size, "exchange": name, "alone": alone}
                print(json.dumps(row | {"seconds": statistics.median(slowest[1:])}), flush=True)
    exchanges["gloo"].close()


def direct(name: str, exchange: Exchange, tensor: torch.Tensor) -> Callable[[], object]:
    """Return what sums a tensor in place: a library itself on the CPU, else an exchange."""
    from mpi4py import MPI

    if tensor.device.type == "cpu" and name == "mpi":
        array = tensor.numpy()
        return lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array)
    if tensor.device.type == "cpu" and name == "gloo":
        return lambda: torch.distributed.all_reduce(tensor)
    return exchange.bind(tensor)  # as training does


def moved(shared: Shared, ranks: int) -> Callable[[], object]:
    """Return a call that adds and copies the values of a rank of the ring."""
    part = slice(len(shared.own) * (ranks - 1) // ranks)

    def call() -> None:
        shared.own[part].add_(shared.left[part])
        shared.own[part].copy_(shared.left[part])

    return call


def settle(place: torch.device) -> None:
    """Wait for what a GPU still does."""
    if place.type == "cuda":
        torch.cuda.synchronize(place)


def main() -> None:
    """Launch the jobs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument(
        "--kept",
        type=int,
        nargs="+",
        choices=(0, 1),
        default=[0, 1],
        help="whether freed memory is kept, as training does",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--in-job", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_job:
        measure(arguments.kept == [1], arguments.device)
        return
    print(
        "ranks\tkept\tbytes\texchange\tms\tms_least\tms_most\tratio\tratio_least\tratio_most\talone_ms\talone"
    )
    launcher = Path(sys.executable).with_name("mpiexec")
    for ranks in arguments.ranks:
        taken: dict[tuple[int, int, str], list[float]] = {}
        alone: dict[tuple[int, int, str], list[float]] = {}
        for kept in arguments.launches * arguments.kept:
            words = [launcher, "-n", str(ranks), sys.executable, "-m", "mpi4py", __file__]
            job = subprocess.run(
                [*words, "--in-job", "--device", arguments.device, "--kept", str(kept)],
                capture_output=True,
                text=True,
                check=True,
            )
            for row in map(json.loads, job.stdout.splitlines()):
                key = kept, row["bytes"], row["exchange"]
                taken.setdefault(key, []).append(row["seconds"])
                alone.setdefault(key, []).append(row["alone"])
        for (kept, size, name), seconds in sorted(taken.items()):
            ratios, unbroken = (
                list(map(operator.truediv, each[kept, size, name], each[kept, size, "ring"]))
                for each in (taken, alone)
            )
            times = [statistics.median(seconds), min(seconds), max(seconds)]
            cells = [f"{1e3 * one:.3f}" for one in times]
            cells += [f"{one:.2f}" for one in (statistics.median(ratios), min(ratios), max(ratios))]
            cells.append(f"{1e3 * statistics.median(alone[kept, size, name]):.3f}")
            cells.append(f"{statistics.median(unbroken):.2f}")
            print(f"{ranks}\t{kept}\t{size}\t{name}\t" + "\t".join(cells), flush=True)


if __name__ == "__main__":
    main()
