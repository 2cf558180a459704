"""Run by mpirun: trains span by several exchanges and prints each rank's weights as JSON.

Arguments: the folder of toy sequences, a folder for results, then exchanges; all ranks take part.
"""

import hashlib
import sys
from pathlib import Path
from unittest import mock

import torch

from actionspan.temporal import training
from actionspan.temporal.settings import TemporalSettings
from mpi.ranks import run_cases

SETTINGS = TemporalSettings(hidden=16, epochs=2, batch_size=5, members=3)


def run(exchange, comm):
    """Train by an exchange and gather the digests of the weights that every rank holds."""
    toy, out = Path(sys.argv[1]), Path(sys.argv[2])
    files = (toy / "features.h5", toy / "annotations.json", "span", SETTINGS, out / exchange)
    built, start = [], training.start

    def watched(*given):
        built.append(start(*given))
        return built[-1]

    with mock.patch.object(training, "start", watched):
        training.train(*files, exchange=exchange, comm=comm)
    weights = torch.cat([one.detach().flatten() for one in built[-1][0].parameters()])
    return {"digests": comm.gather(hashlib.sha256(weights.numpy().tobytes()).hexdigest())}


if __name__ == "__main__":
    run_cases(run, [(3, exchange, exchange) for exchange in sys.argv[3:]])
