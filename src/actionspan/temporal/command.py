"""`actionspan temporal`: train a temporal network, predict with it."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.parallel.settings import ON_CPUS, ParallelSettings, processes
from actionspan.settings import add_arguments, from_arguments
from actionspan.temporal.settings import MODELS, TemporalSettings


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add `train` and `predict`."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    step = steps.add_parser(
        "train",
        help="train a network",
        description="Train a temporal network. Killed, it goes on where it was when run again.",
    )
    step.add_argument("--features", type=Path, required=True, help="features.h5")
    step.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    step.add_argument(
        "--model",
        choices=MODELS,
        default="mtn",
        help="origin: BSN's TEM; se: SE-ConvNet alone; dense: TEM + Multipath DenseNet; "
        "mtn: SE-ConvNet + Multipath DenseNet; cnn2, cnn4: TEM with 2 and 4 convolutions; "
        "attention: self-attention; tcn: residual dilated convolutions (default: mtn)",
    )
    step.add_argument(
        "--threads", type=int, default=1, help="CPU threads; the model's bits depend on them"
    )
    step.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="go on from a checkpoint in the folder, if there is one (default: yes)",
    )
    step.add_argument(
        "--out", type=Path, required=True, help="folder for model.pt, log.tsv and timing.json"
    )
    step.add_argument(
        "--exchange",
        choices=ON_CPUS,
        default="none",
        help="how ranks exchange gradients or models; all but none are started by "
        "`mpiexec -n N python -m mpi4py -m actionspan temporal train …` (default: none)",
    )
    step.add_argument(
        "--ranks",
        type=int,
        default=1,
        help="ranks that compute; ps and ps_async take one process more, the server (default: 1)",
    )
    add_arguments(step, TemporalSettings)
    add_arguments(step, ParallelSettings)
    step.set_defaults(run=_train)

    step = steps.add_parser(
        "predict",
        help="probabilities of start, action and end",
        description="Write the probabilities of every video of features.h5, one at a time.",
    )
    step.add_argument("--model", type=Path, required=True, help="model.pt")
    step.add_argument("--features", type=Path, required=True, help="features.h5")
    step.add_argument("--out", type=Path, required=True, help="probabilities.h5")
    step.set_defaults(run=_predict)


def _train(arguments: argparse.Namespace) -> int:
    from actionspan.parallel.launch import world
    from actionspan.parallel.launcher import launched
    from actionspan.running.allocator import keep_freed_memory
    from actionspan.temporal.timing import process_start
    from actionspan.temporal.training import train

    # MPI first, so that the first rank to find a mistake ends the job
    comm = world() if arguments.exchange != "none" or launched() > 1 else None
    started = comm.Get_size() if comm is not None else 1
    if arguments.threads < 1:
        raise InputError(f"--threads {arguments.threads}: at least 1")
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
        threads=arguments.threads,
        exchange=arguments.exchange,
        parallel=from_arguments(ParallelSettings, arguments),
        comm=comm if arguments.exchange != "none" else None,
        begun=process_start(),
        continued=arguments.resume,
    )
    return 0


def _predict(arguments: argparse.Namespace) -> int:
    from actionspan.temporal.prediction import predict

    predict(arguments.model, arguments.features, arguments.out)
    return 0
