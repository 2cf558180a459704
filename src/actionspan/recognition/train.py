"""Train the classifier of a stream; killed, it resumes where it was when run again."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.parallel.settings import ON_CPUS, ExchangeName, ParallelSettings, processes
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import add_settings, at_least_one, from_arguments

OF_VARIANT = ("averaging_steps", "average_state")  # which stand in the settings of recognition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--clips", type=Path, nargs="+", required=True, help="clip stores")
    parser.add_argument("--stream", choices=("rgb", "flow"), required=True, help="which pictures")
    parser.add_argument(
        "--weights", type=Path, help="to start from: a checkpoint, or a name of torchvision's"
    )
    parser.add_argument(
        "--rgb-model", type=Path, help="model.pt of the RGB stream, from which flow starts"
    )
    parser.add_argument(
        "--exchange",
        choices=ON_CPUS,
        default="aavg",
        help="how learners are joined; aavg averages models (default: aavg)",
    )
    parser.add_argument(
        "--learners",
        type=int,
        default=1,
        help="P; started by `mpiexec -n P python -m mpi4py -m actionspan recognition train …`, or "
        "by aavg in one process where that is all there is (default: 1)",
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
        "--out", type=Path, required=True, help="folder for model.pt, log.tsv and scores.json"
    )
    add_settings(parser, RecognitionSettings)
    add_settings(parser, ParallelSettings, without=OF_VARIANT)


def run(arguments: argparse.Namespace) -> None:
    """Train the learners of this process."""
    settings = from_arguments(RecognitionSettings, arguments)
    parallel = from_arguments(
        ParallelSettings,
        arguments,
        averaging_steps=settings.averaging_steps,
        average_state=settings.is_on("average_state"),
    )
    from actionspan.parallel.launch import world
    from actionspan.parallel.launcher import is_rank
    from actionspan.running.allocator import keep_freed_memory

    # MPI first, so that the first rank to find a mistake ends the job
    comm = world() if is_rank() or arguments.exchange not in ("none", "aavg") else None
    started = comm.Get_size() if comm is not None else 1
    check_processes(arguments.exchange, arguments.learners, started)
    if started == 1 and arguments.exchange in ("none", "aavg"):
        comm = None  # all learners are in this process
    threads = at_least_one("--threads", arguments.threads)
    keep_freed_memory()
    from actionspan.recognition.training import train

    train(
        arguments.clips,
        arguments.stream,
        settings,
        arguments.out,
        weights=arguments.weights,
        rgb_model=arguments.rgb_model,
        exchange=arguments.exchange,
        learners=arguments.learners,
        parallel=parallel,
        comm=comm,
        threads=threads,
        continued=arguments.resume,
    )


def check_processes(exchange: ExchangeName, learners: int, started: int) -> None:
    """Check that as many processes were started as the learners need.

    Raises:
        InputError: There are more, or fewer.
    """
    try:
        count = processes(exchange, learners)
    except ValueError as error:
        raise InputError(str(error)) from None
    alone = exchange == "aavg" and started == 1
    if started != count and not alone:
        raise InputError(
            f"--exchange {exchange} --learners {learners}: {count} process"
            f"{'es are' if count > 1 else ' is'} needed, {started} started: "
            f"mpiexec -n {count} python -m mpi4py -m actionspan recognition train …"
        )
