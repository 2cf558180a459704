"""Run by mpirun: trains classifiers on the first 2, 3, … ranks of one job, case after case.

The only word is a JSON file with a list of cases: clips, folder, ranks, and how they train.
"""

import json
import sys
from pathlib import Path
from typing import Any

from actionspan.parallel.settings import ParallelSettings
from actionspan.recognition.settings import PARTS
from actionspan.recognition.training import train
from mpi.ranks import run_cases
from recognition.learning import tiny


def run(case: dict[str, Any], comm: Any) -> None:
    """Train on all ranks of a communicator; None: all learners are in this process."""
    settings = tiny(**{**case["settings"], "aavg": tuple(case["settings"].get("aavg", PARTS))})
    parallel = ParallelSettings(
        averaging_steps=settings.averaging_steps, average_state=settings.is_on("average_state")
    )
    train(
        [Path(case["clips"])],
        case["stream"],
        settings,
        Path(case["out"]),
        rgb_model=Path(case["rgb_model"]) if case["rgb_model"] else None,
        exchange=case["exchange"],
        learners=case["learners"],
        parallel=parallel,
        comm=comm,
    )


if __name__ == "__main__":
    every = json.loads(Path(sys.argv[1]).read_text())
    run_cases(run, [(case["ranks"], case["out"], case) for case in every])
