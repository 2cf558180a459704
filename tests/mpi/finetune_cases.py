"""Run by mpirun: tunes encoders on the first 2, 3, … ranks of one job, case after case.

The only word is a JSON file with a list of cases: folders of the toy and of the results, ranks,
exchange and settings. Beside its results, a case writes the gradients of its first step, as the
optimiser is given them, to gradients.pt.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from actionspan.finetune.tuning import tune
from actionspan.parallel.settings import ParallelSettings
from finetune.toy import write_toy
from mpi.ranks import run_cases


def run(case: dict[str, Any], comm: Any) -> None:
    """Tune on all ranks of a communicator; None: in this process alone."""
    # every rank writes its own copy: the toy follows from its name
    rank = comm.Get_rank() if comm is not None else 0
    folder = Path(case["toy"]) / f"{case['exchange']}-{case['ranks']}-{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    toy = write_toy(folder).with_settings(**case["settings"])
    gradients: list[list[torch.Tensor]] = []
    step = torch.optim.Adam.step

    def keeping(optimiser: torch.optim.Adam, *arguments: Any) -> Any:
        groups = optimiser.param_groups
        if len(groups) == 2 and not gradients:  # of encoders and the network above them
            every = [each.grad for group in groups for each in group["params"]]
            gradients.append([each.clone() for each in every if each is not None])
        return step(optimiser, *arguments)

    torch.optim.Adam.step = keeping
    try:
        tune(
            *toy.arguments,
            Path(case["out"]),
            exchange=case["exchange"],
            parallel=ParallelSettings(overlap=False, averaging_steps=1),
            comm=comm,
        )
    finally:
        torch.optim.Adam.step = step
    if rank == 0 and gradients:
        torch.save(gradients[0], Path(case["out"]) / "gradients.pt")


if __name__ == "__main__":
    every = json.loads(Path(sys.argv[1]).read_text())
    run_cases(run, [(case["ranks"], case["out"], case) for case in every])
