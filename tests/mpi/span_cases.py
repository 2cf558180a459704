"""Run by mpirun: trains span by several exchanges and prints each rank's weights as JSON.

Arguments: the folder of toy sequences, a folder for results, then exchanges; all ranks take part.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch

from actionspan.parallel.launch import world
from actionspan.temporal import training
from actionspan.temporal.settings import TemporalSettings

SETTINGS = TemporalSettings(hidden=16, epochs=2, batch_size=5, members=3)


def main() -> None:
    """Train by each exchange and gather what every rank holds."""
    comm = world()
    toy, out = Path(sys.argv[1]), Path(sys.argv[2])
    built = []
    start = training.start

    def watched(*arguments):
        built.append(start(*arguments))
        return built[-1]

    training.start = watched
    for exchange in sys.argv[3:]:
        files = (toy / "features.h5", toy / "annotations.json", "span", SETTINGS, out / exchange)
        training.train(*files, exchange=exchange, comm=comm)
        weights = torch.cat([one.detach().flatten() for one in built[-1][0].parameters()])
        digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
        digests = comm.gather(digest)
        if comm.Get_rank() == 0:
            print(json.dumps({"exchange": exchange, "digests": digests}), flush=True)


if __name__ == "__main__":
    main()
