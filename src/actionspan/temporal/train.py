"""Train a temporal network; a run that was killed resumes when it is started again."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.parallel.settings import ON_CPUS, ParallelSettings, processes
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.temporal.settings import MODELS, TemporalSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="features.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument(
        "--model",
        choices=MODELS,
        default="mtn",
        help="origin: BSN's TEM; se: SE-ConvNet alone; dense: TEM + Multipath DenseNet; "
        "mtn: SE-ConvNet + Multipath DenseNet; cnn2, cnn4: TEM with 2 and 4 convolutions; "
        "attention: self-attention; tcn: residual dilated convolutions (default: mtn)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads; the model's bits depend on them"
    )
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="resume from a checkpoint in the folder, if there is one (default: yes)",
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for model.pt, log.tsv and timing.json"
    )
    parser.add_argument(
        "--exchange",
        choices=ON_CPUS,
        default="none",
        help="how ranks exchange gradients or models; all but none are started by "
        "`mpiexec -n N python -m mpi4py -m actionspan temporal train …` (default: none)",
    )
    parser.add_argument(
        "--ranks",
        type=int,
        default=1,
        help="ranks that compute; ps and ps_async take another process, the server (default: 1)",
    )
    add_settings(parser, TemporalSettings)
    add_settings(parser, ParallelSettings)


def run(arguments: argparse.Namespace) -> None:
    """Train a network on this process, or as one of many ranks."""
    from actionspan.parallel.launch import world
    from actionspan.parallel.launcher import launched
    from actionspan.running.allocator import keep_freed_memory
    from actionspan.temporal.timing import process_start
    from actionspan.temporal.training import train

    # MPI first, so that the first rank to find a mistake ends the job
    comm = world() if arguments.exchange != "none" or launched() > 1 else None
    started = comm.Get_size() if comm is not None else 1
    threads = at_least_one("--threads", arguments.threads)
    try:
        count = processes(arguments.exchange, arguments.ranks)
    except ValueError as error:
        raise InputError(str(error)) from None
    keep_freed_memory()
    if started != count:
        raise InputError(
            f"--exchange {arguments.exchange} --ranks {arguments.ranks}: {count} "
            f"process{'es are' if count > 1 else ' is'} needed, {started} started: "
            f"mpiexec -n {count} python -m mpi4py -m actionspan temporal train …"
        )
    train(
        arguments.features,
        arguments.annotations,
        arguments.model,
        from_arguments(TemporalSettings, arguments),
        arguments.out,
        threads=threads,
        exchange=arguments.exchange,
        parallel=from_arguments(ParallelSettings, arguments),
        comm=comm if arguments.exchange != "none" else None,
        started=process_start(),
        continued=arguments.resume,
    )
