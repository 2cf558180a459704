"""Exchanges side by side on one machine: seconds of one all-reduce over shared memory.

    python benchmarks/exchange.py --ranks 2 4 --launches 5

Starts `mpiexec` several times for each number of ranks. In a launch all exchanges take turns on
tensors of each size (1 KiB to 64 MiB, and MTN's whole gradient for 256 channels), so that whatever
else the machine does meets them alike; a launch's figure is the median over its turns of the
slowest rank's seconds, a row the median over launches. `ratio` is how many times the ring is as
fast, with the range over launches. Each exchange sums tensors that lie where its buckets do in
training. With `--keep` the C library keeps freed memory, as it does in `actionspan temporal train`:
MPI_Allreduce takes and frees a buffer in every call. With `--device cuda` the tensors lie on GPUs,
over which ranks are spread.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from actionspan.networks.runtime import choose_device
from actionspan.parallel.exchange import make_exchange
from actionspan.parallel.launch import world
from actionspan.parallel.settings import ParallelSettings
from actionspan.parallel.transfer import zeros
from actionspan.running.memory import keep_freed_memory

NAMES = ("ring", "mpi", "gloo", "ps_worker", "ps_sharded", "auto")
MTN_BYTES = 6578552
SIZES = (1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 4 << 20, MTN_BYTES, 16 << 20, 64 << 20)


def measure(keep: bool, device: str) -> None:
    """In an MPI job: print seconds by size and exchange as JSON."""
    torch.set_num_threads(1)
    if keep:
        keep_freed_memory()  # as `actionspan temporal train` does
    comm = world()
    place = choose_device(device)
    exchanges = {name: make_exchange(name, comm.Dup(), ParallelSettings()) for name in NAMES}
    for size in SIZES:
        tensors = {  # as buckets are
            name: getattr(exchange, "room", zeros)(size // 4, torch.float32, place)
            for name, exchange in exchanges.items()
        }
        turns = 9 if size > 1 << 21 else 101
        seconds: dict[str, list[float]] = {name: [] for name in NAMES}
        for _ in range(turns):
            for name, exchange in exchanges.items():
                values = tensors[name].fill_(1.0)
                settle(place)
                comm.Barrier()
                begun = time.perf_counter()
                exchange.allreduce(values)
                settle(place)
                seconds[name].append(time.perf_counter() - begun)
        assert all(float(each[-1]) == comm.Get_size() for each in tensors.values())
        for name, taken in seconds.items():
            slowest = [max(turn) for turn in zip(*comm.allgather(taken), strict=True)]
            if comm.Get_rank() == 0:
                row = {"bytes": size, "exchange": name, "seconds": statistics.median(slowest[1:])}
                print(json.dumps(row), flush=True)
    exchanges["gloo"].close()


def settle(place: torch.device) -> None:
    """Wait for what a GPU still does."""
    if place.type == "cuda":
        torch.cuda.synchronize(place)


def main() -> None:
    """Launch the jobs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="keep freed memory, as training does")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--in-job", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_job:
        measure(arguments.keep, arguments.device)
        return
    print("ranks\tbytes\texchange\tms\tms_least\tms_most\tratio\tratio_least\tratio_most")
    launcher = Path(sys.executable).with_name("mpiexec")
    own = ["--in-job", "--device", arguments.device, *["--keep"] * arguments.keep]
    for ranks in arguments.ranks:
        taken: dict[tuple[int, str], list[float]] = {}
        for _ in range(arguments.launches):
            words = [launcher, "-n", str(ranks), sys.executable, "-m", "mpi4py", __file__]
            job = subprocess.run(
                [*words, *own],
                capture_output=True,
                text=True,
                check=True,
            )
            for row in map(json.loads, job.stdout.splitlines()):
                taken.setdefault((row["bytes"], row["exchange"]), []).append(row["seconds"])
        for (size, name), seconds in taken.items():
            ring = taken[size, "ring"]
            ratios = [one / two for one, two in zip(seconds, ring, strict=True)]
            times = [statistics.median(seconds), min(seconds), max(seconds)]
            cells = [f"{1e3 * one:.3f}" for one in times]
            cells += [f"{one:.2f}" for one in (statistics.median(ratios), min(ratios), max(ratios))]
            print(f"{ranks}\t{size}\t{name}\t" + "\t".join(cells), flush=True)


if __name__ == "__main__":
    main()
