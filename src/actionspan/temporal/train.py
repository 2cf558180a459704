"""Train a temporal network; a run that was killed resumes when it is started again."""

import argparse
from pathlib import Path

from actionspan.parallel.settings import ParallelSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.temporal.settings import MODELS, TemporalSettings
from actionspan.training.settings import add_training_flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument(
        "--model",
        choices=MODELS,
        default="mtn",
        help="; ".join(f"{name}: {each.help}" for name, each in MODELS.items()) + " (default: mtn)",
    )
    add_training_flags(
        parser,
        exchange="none",
        how="how ranks exchange gradients or models; all but none are started by "
        "`mpiexec -n N python -m mpi4py -m actionspan temporal train …`",
        workers="--ranks",
        count="ranks that compute; ps and ps_async take another process, the server",
        files="model.safetensors, log.tsv and timing.json",
    )
    add_settings(parser, TemporalSettings)
    add_settings(parser, ParallelSettings)


def run(arguments: argparse.Namespace) -> None:
    """Train a network on this process, or as one of many ranks."""
    from actionspan.jobs.memory import keep_freed_memory
    from actionspan.parallel.launch import join
    from actionspan.temporal.training import process_start, train

    # MPI first, so that the first rank to find a mistake ends the job
    comm = join("temporal train", arguments.exchange, "--ranks", arguments.ranks)
    threads = at_least_one("--threads", arguments.threads)
    keep_freed_memory()
    train(
        arguments.features,
        arguments.annotations,
        arguments.model,
        from_arguments(TemporalSettings, arguments),
        arguments.out,
        threads=threads,
        exchange=arguments.exchange,
        parallel=from_arguments(ParallelSettings, arguments),
        comm=comm,
        started=process_start(),
        continued=arguments.resume,
    )
