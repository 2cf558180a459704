"""MTN's training step: one rank against bare torch, and several ranks against one.

    python benchmarks/training_step.py --launches 5

Every launch times, on random features (batch 64 × 100 steps × 256 channels, hidden 512): (1) the
bare torch step and the trainer's step (exchange none), in turns on one rank with one thread; (2)
for each exchange, the same global batch on 2 ranks of one thread each. A row is the median over
launches of each launch's median step; ratios are of medians within one launch or of neighbouring
launches, with their range.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from actionspan.jobs.memory import keep_freed_memory
from actionspan.parallel.launch import world
from actionspan.parallel.replica import make_replica
from actionspan.parallel.settings import ParallelSettings
from actionspan.temporal.loss import boundary_loss
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import start, training_step

EXCHANGES = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo")
CHANNELS, STEPS = 256, 100


def measure(name: str, batch: int, steps: int, overlap: bool) -> None:
    """Print this job's median seconds a step as JSON."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as `actionspan temporal train` does
    comm = world() if name != "none" else None
    model, optimiser = start("mtn", CHANNELS, TemporalSettings(batch_size=batch))
    model.train()
    replica = make_replica(name, model, optimiser, ParallelSettings(overlap=overlap), comm)
    torch.manual_seed(1)
    features = torch.randn(batch, STEPS, CHANNELS)
    labels = (torch.rand(batch, STEPS, 3) < 0.2).float()
    rows = replica.share(batch)
    taken: dict[str, list[float]] = {"trainer": [], "bare": []}
    for _ in range(steps):
        if comm is None:
            begun = time.perf_counter()
            optimiser.zero_grad()
            boundary_loss(model(features), labels).total.backward()
            optimiser.step()
            taken["bare"].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        training_step(model, replica, features[rows], labels, rows)
        taken["trainer"].append(time.perf_counter() - begun)
    medians = {key: statistics.median(each[2:]) for key, each in taken.items() if each}
    every = replica.gather({**medians, **replica.seconds}, "the seconds")
    replica.close()
    if replica.rank == 0:
        print(json.dumps({key: max(one[key] for one in every) for key in every[0]}))


def job(name: str, ranks: int, batch: int, steps: int, overlap: bool) -> dict[str, float]:
    """Run one job and return what it printed."""
    words = [sys.executable, "-m", "mpi4py", __file__, "--in-job", name, "--batch", str(batch)]
    words += ["--steps", str(steps)] + ["--overlap"] * overlap
    processes = ranks + (name == "ps")
    if name != "none":
        words = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(processes), *words]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(label: str, seconds: list[float], ratios: list[float]) -> None:
    """Print one row."""
    cells = [statistics.median(ratios), min(ratios), max(ratios)]
    print(
        f"{label}\t{1e3 * statistics.median(seconds):.2f}\t" + "\t".join(f"{c:.3f}" for c in cells)
    )


def main() -> None:
    """Launch the jobs in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--exchanges", nargs="+", default=EXCHANGES)
    parser.add_argument("--in-job", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shape = (arguments.batch, arguments.steps, arguments.overlap)
    if arguments.in_job:
        measure(arguments.in_job, *shape)
        return
    alone: list[dict[str, float]] = []
    many: dict[str, list[dict[str, float]]] = {name: [] for name in arguments.exchanges}
    for _ in range(arguments.launches):
        alone.append(job("none", 1, *shape))
        for name, each in many.items():
            each.append(job(name, arguments.ranks, *shape))
    print("what\tms_per_step\tratio\tleast\tmost")
    bare, one = ([each[key] for each in alone] for key in ("bare", "trainer"))
    show("bare torch step", bare, [1.0] * len(bare))
    show("trainer, 1 rank (ratio to bare)", one, [a / b for a, b in zip(one, bare, strict=True)])
    for name, each in many.items():
        step = [row["trainer"] for row in each]
        speed = [a / b for a, b in zip(one, step, strict=True)]
        show(f"{name}, {arguments.ranks} ranks (times as fast as 1 rank)", step, speed)


if __name__ == "__main__":
    main()
