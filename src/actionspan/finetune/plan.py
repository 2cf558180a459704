"""Say how a tuning fits into its memory budget, before anything is trained."""

import argparse
from pathlib import Path

from actionspan.finetune.settings import add_tuning_flags, tuning_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_tuning_flags(parser)
    parser.add_argument("--out", type=Path, required=True, help="plan.json")


def run(arguments: argparse.Namespace) -> None:
    """Probe the networks, print the plan and write it."""
    settings = tuning_settings(arguments)
    from actionspan.features.encoders import device_of
    from actionspan.files.storage import write_text
    from actionspan.finetune.encoders import build_encoders
    from actionspan.finetune.preparation import Task, described, plan_tuning
    from actionspan.finetune.snippets import SnippetStore
    from actionspan.finetune.videos import divide_videos

    finetune = settings.finetune
    store = SnippetStore(arguments.snippets, stride=finetune.snippet_stride)
    task = Task(
        store=store,
        videos=divide_videos(store, arguments.annotations, finetune.held_out),
        settings=finetune,
        rescaling=settings.rescaling,
        temporal=settings.temporal,
        head=None,
    )
    device = device_of(settings.encoders)
    encoders = build_encoders(
        finetune.streams, settings.encoders, store.planes, finetune.frozen_stages, device
    )
    if finetune.way == "frozen":
        encoders.requires_grad_(False)
    plan = plan_tuning(task, encoders)
    print(described(plan))
    write_text(arguments.out, plan.to_json())
