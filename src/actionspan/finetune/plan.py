"""Print how a tuning fits into its memory budget, before anything is trained."""

import argparse
from pathlib import Path

from actionspan.finetune.settings import add_tuning_flags, tuning_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_tuning_flags(parser)
    parser.add_argument("--out", type=Path, required=True, help="plan.json")


def run(arguments: argparse.Namespace) -> None:
    """Probe the networks, print the plan and write it."""
    settings, encoders, rescaling, temporal = tuning_settings(arguments)
    from actionspan.finetune.preparation import plan_line, plan_tuning, read_task, untuned_encoders
    from actionspan.storage.writing import write_text

    task = read_task(arguments.snippets, arguments.annotations, settings, rescaling, temporal)
    plan = plan_tuning(task, untuned_encoders(task, encoders))
    print(plan_line(plan))
    write_text(arguments.out, plan.to_json())
