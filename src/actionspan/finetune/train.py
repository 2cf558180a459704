"""Tune encoders within a memory budget; killed, it resumes where it was when run again."""

import argparse
from typing import Any

from actionspan.finetune.settings import add_tuning_flags, tuning_settings
from actionspan.parallel.settings import ParallelSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.training.settings import add_training_flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_tuning_flags(parser)
    add_training_flags(
        parser,
        exchange="none",
        how="how ranks exchange gradients or models; all but none are started by "
        "`mpiexec -n N python -m mpi4py -m actionspan finetune train …`",
        workers="--ranks",
        count="ranks that compute; ps and ps_async take another process, the server",
        files="models of streams, temporal.safetensors, log.tsv, scores.json and plan.json",
    )
    add_settings(parser, ParallelSettings)


def run(arguments: argparse.Namespace) -> None:
    """Tune on this process, or as one of many ranks."""
    from actionspan.parallel.launch import join

    # MPI first, so that the first rank to find a mistake ends the job
    comm = join("finetune train", arguments.exchange, "--ranks", arguments.ranks)
    parallel = from_arguments(ParallelSettings, arguments)
    run_tuning(arguments, exchange=arguments.exchange, parallel=parallel, comm=comm)


def run_tuning(arguments: argparse.Namespace, **how: Any) -> None:
    """Tune by the flags of a step; `how` are the other arguments of `tune`."""
    threads = at_least_one("--threads", arguments.threads)
    settings = tuning_settings(arguments)
    from actionspan.finetune.tuning import tune
    from actionspan.jobs.memory import keep_freed_memory

    keep_freed_memory()
    asked = (arguments.snippets, arguments.annotations, *settings, arguments.out)
    tune(*asked, threads=threads, continued=arguments.resume, **how)
