"""Where the seconds of a training run go."""

import os
import platform
import time
from pathlib import Path
from typing import Any

from actionspan.parallel.member import Replica
from actionspan.training.fit import Stopwatch


def process_start() -> float:
    """Return when this process began, in `time.perf_counter`'s seconds.

    Only Linux says; elsewhere it is now, without the start of Python and its imports.
    """
    try:
        status = Path("/proc/self/stat").read_text()
        ticks = int(status.rpartition(")")[2].split()[19])  # since boot
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        age = 0.0
    return time.perf_counter() - age


def rank_timing(replica: Replica, stopwatch: Stopwatch) -> dict[str, Any]:
    """Return a rank's host, and where its seconds went as paper 000 divides them (section III-E).

    `t1` is computing: forward, backward, update and validation. `t2` is waiting for other ranks:
    for their gradients, and between epochs. `t3` is the rest: the start of Python and of MPI,
    reading, checkpoints and writing the model. `communication` is what all exchanges of gradients
    took, which is more than t2 where they overlap with computing.
    """
    report = stopwatch.report()
    t1 = report.get("t1_seconds", 0.0) + report.get("validation_seconds", 0.0)
    t2 = replica.seconds["exchange"]
    return {
        "rank": replica.rank,
        "host": platform.node(),
        "role": "server" if replica.worker is None else "worker",
        "t1": t1,
        "t2": t2,
        "t3": report["seconds"] - t1 - t2,
        "communication": replica.seconds["communication"],
        "parts": report,
        **replica.report(),
    }


def whole_timing(timings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the timing of a run from those of its ranks.

    Its t1, t2 and t3 are those of a single rank, so that they add up to its seconds: of the worker
    that computed longest, since the others waited for it.
    """
    workers = [rank for rank in timings if rank["role"] == "worker"]
    slowest = max(workers, key=lambda rank: rank["t1"])
    parts = {f"{part}_seconds": slowest[part] for part in ("t1", "t2", "t3")}
    return {"seconds": slowest["parts"]["seconds"], **parts, "per_rank": timings}
