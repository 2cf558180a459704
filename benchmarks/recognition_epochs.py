"""Epochs of recognition: learners on a thread each against one learner, and what they wait for.

    python benchmarks/recognition_epochs.py --clips results/recognition/clips/*.h5 --launches 5

A launch trains a classifier for some epochs with `actionspan recognition train`: one learner alone
(exchange none), then P learners that average once an epoch (aavg, K = -1), each on one thread. The
first epoch of a launch is left out. A row is a stream: clips a second of both, the ratio of the two
neighbouring launches, and which part of the averaged epochs (validation aside) went into waiting
for clips and into averaging, with waiting for the other learners in it. All are medians over the
launches, with their range.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from actionspan.storage.writing import read_tsv


@dataclass(frozen=True)
class Epochs:
    """What a launch took, over the epochs that count."""

    clips_per_second: float
    waiting: float
    communication: float


def train(arguments: argparse.Namespace, stream: str, learners: int, folder: Path) -> Epochs:
    """Train once; return what its log says."""
    words = ["-m", "mpi4py", "-m", "actionspan", "recognition", "train", "--stream", stream]
    words += ["--exchange", "aavg" if learners > 1 else "none", "--learners", str(learners)]
    words += ["--clips", *map(str, arguments.clips), "--out", str(folder), *arguments.settings]
    words += ["--aavg", "adaptive_batch", "average_state", "--epochs", str(arguments.epochs)]
    words += ["--validation-samples", "1", "--final-samples", "1"]
    launcher = ["mpiexec", "-n", str(learners)] if learners > 1 else []
    subprocess.run(
        [*launcher, sys.executable, *words],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )
    rows = read_tsv(folder / "log.tsv")
    seconds, waited, averaged = (
        sum(float(row[f"{name}seconds"]) for row in rows[1:])
        for name in ("", "waiting_", "communication_")
    )
    clips = int(rows[-1]["samples"]) - int(rows[0]["samples"])
    return Epochs(clips / seconds, waited / seconds, averaged / seconds)


def spread(values: Sequence[float], form: str) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def main() -> None:
    """Time the launches and print a row a stream."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=Path, nargs="+", required=True, help="clip stores")
    parser.add_argument("--streams", nargs="+", default=["rgb", "flow"])
    parser.add_argument("--learners", type=int, default=2, help="P")
    parser.add_argument("--launches", type=int, default=5, help="of each")
    parser.add_argument("--epochs", type=int, default=4, help="of each launch")
    parser.add_argument(
        "settings", nargs="*", help="of the training, after --, such as -- --batch-size 32"
    )
    arguments = parser.parse_args()
    print("stream\tone_clips_per_s\tall_clips_per_s\tratio\twaiting\tcommunication", flush=True)
    for stream in arguments.streams:
        alone, together = [], []
        for _ in range(arguments.launches):
            for learners, found in ((1, alone), (arguments.learners, together)):
                with tempfile.TemporaryDirectory() as folder:
                    found.append(train(arguments, stream, learners, Path(folder)))
        ratios = [
            many.clips_per_second / one.clips_per_second
            for one, many in zip(alone, together, strict=True)
        ]
        cells = [
            spread([one.clips_per_second for one in alone], ".2f"),
            spread([many.clips_per_second for many in together], ".2f"),
            spread(ratios, ".2f"),
            spread([many.waiting for many in together], ".2%"),
            spread([many.communication for many in together], ".2%"),
        ]
        print("\t".join([stream, *cells]), flush=True)


if __name__ == "__main__":
    main()
