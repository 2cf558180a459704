"""Tuning an encoder within three budgets of GPU memory: what was planned, and what it takes.

    python benchmarks/gpu_tuning.py --budgets 1500 4000 12000

EfficientNet-Lite0 (untrained, norms folded) below a temporal network, one video; each budget in a
process of its own. The plan chooses the execution, the pieces and the keep ratio; three steps with
Adam follow. Seconds are those of the clock, the median of five more steps.
"""

import argparse
import time
from dataclasses import replace
from statistics import median

import torch

from actionspan.jobs.apart import worker_pool
from actionspan.jobs.memory import DeviceMemory
from actionspan.memory.planning import MEGABYTE, plan_memory
from actionspan_papers.sbp.measured import Case, build, stepper
from actionspan_papers.sbp.settings import MeasureSettings

_WARM, _TIMED = 3, 5


def measure(settings: MeasureSettings, budget: int) -> str:
    """Return a row of the table."""
    plan = plan_memory(*build(settings, "meta"), budget, None)
    ratio = plan.keep_ratio
    assert isinstance(ratio, float)
    memory = DeviceMemory(torch.device(settings.device))
    case = Case(plan.way, plan.execution, ratio)
    step = stepper(case, build(settings, settings.device), plan.piece)
    taken = []
    for _ in range(_WARM + _TIMED):
        begun = time.perf_counter()
        step()
        torch.cuda.synchronize(settings.device)
        taken.append(time.perf_counter() - begun)
    allocated = torch.cuda.max_memory_allocated(settings.device)
    sizes = [each / MEGABYTE for each in (plan.expected_bytes, allocated, memory.peak())]
    cells = [budget, plan.execution, f"{ratio:.3f}", plan.piece, *(f"{size:.0f}" for size in sizes)]
    return "\t".join(map(str, [*cells, f"{1000 * median(taken[_WARM:]):.0f}"]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--budgets", type=int, nargs="+", default=[1500, 4000, 12000], help="MB")
    parser.add_argument("--input-size", type=int, default=224, help="pixels")
    parser.add_argument("--snippets", type=int, default=400)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    settings = replace(
        MeasureSettings(),
        input_size=arguments.input_size,
        snippets=arguments.snippets,
        device=arguments.device,
    )
    print("budget_MB\texecution\tkeep_ratio\tpiece\tplanned_MB\tallocated_MB\theld_MB\tms_a_step")
    for budget in arguments.budgets:
        with worker_pool(1) as pool:
            print(pool.submit(measure, settings, budget).result(), flush=True)


if __name__ == "__main__":
    main()
