"""Train the classifier of a stream; killed, it resumes where it was when run again."""

import argparse
from pathlib import Path

from actionspan.parallel.settings import ParallelSettings
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import add_settings, at_least_one, from_arguments
from actionspan.training.settings import add_training_flags

_OF_RECOGNITION = ("averaging_steps", "average_state")  # which RecognitionSettings decides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--clips", type=Path, nargs="+", required=True, help="clip stores")
    parser.add_argument("--stream", choices=("rgb", "flow"), required=True, help="which images")
    parser.add_argument(
        "--weights", type=Path, help="to start from: a checkpoint, or a name of torchvision's"
    )
    parser.add_argument(
        "--rgb-model", type=Path, help="model.safetensors of the RGB stream, from which flow starts"
    )
    add_training_flags(
        parser,
        exchange="aavg",
        how="how learners are joined; aavg averages models",
        workers="--learners",
        count="P; start them by `mpiexec -n P python -m mpi4py -m actionspan recognition train …`; "
        "without mpiexec, aavg trains all of them in one process",
        files="model.safetensors, log.tsv and scores.json",
    )
    add_settings(parser, RecognitionSettings)
    add_settings(parser, ParallelSettings, without=_OF_RECOGNITION)


def run(arguments: argparse.Namespace) -> None:
    """Train the learners of this process."""
    from actionspan.jobs.memory import keep_freed_memory
    from actionspan.parallel.launch import join

    # MPI first, so that the first rank to find a mistake ends the job
    exchange, learners = arguments.exchange, arguments.learners
    comm = join("recognition train", exchange, "--learners", learners, in_process=True)
    threads = at_least_one("--threads", arguments.threads)
    settings = from_arguments(RecognitionSettings, arguments)
    averages = (settings.averaging_steps, settings.is_on("average_state"))
    own = dict(zip(_OF_RECOGNITION, averages, strict=True))
    parallel = from_arguments(ParallelSettings, arguments, **own)
    keep_freed_memory()
    from actionspan.recognition.training import train

    train(
        arguments.clips,
        arguments.stream,
        settings,
        arguments.out,
        weights=arguments.weights,
        rgb_model=arguments.rgb_model,
        exchange=exchange,
        learners=learners,
        parallel=parallel,
        comm=comm,
        threads=threads,
        continued=arguments.resume,
    )
