"""How long scoring takes: reading and scoring a proposals file as large as ActivityNet's.

    python benchmarks/evaluation.py [--videos 4728] [--proposals 100]

Writes random ground truth and proposals to a temporary folder, scores them by the command that
users call, in a process of its own, and prints one line of a table.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from actionspan.proposals.writing import result_rows, write_proposals


def write_input(folder: Path, videos: int, proposals: int) -> None:
    """Write ground truth with about 1.5 instances a video, and random proposals."""
    generator = np.random.default_rng(1)
    database, made = {}, {}
    for video in range(videos):
        video_id = f"v_{video:011d}"
        duration = float(generator.uniform(5, 240))
        instances = np.sort(generator.uniform(0, duration, (1 + video % 2, 2)), axis=1)
        database[video_id] = {
            "subset": "validation",
            "duration": duration,
            "annotations": [{"segment": row, "label": "action"} for row in instances.tolist()],
        }
        segments = np.sort(generator.uniform(0, duration, (proposals, 2)), axis=1)
        scores = np.sort(generator.uniform(size=proposals))[::-1]
        made[video_id] = result_rows(segments, scores)
    (folder / "truth.json").write_text(json.dumps({"database": database}), encoding="utf-8")
    write_proposals(made.items(), folder / "proposals.json")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=4728)
    parser.add_argument("--proposals", type=int, default=100, help="a video")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_input(folder, arguments.videos, arguments.proposals)
        command = [sys.executable, "-m", "actionspan", "score", "--protocol", "activitynet"]
        files = ["--ground-truth", "truth.json", "--proposals", "proposals.json", "--json"]
        started = time.perf_counter()
        done = subprocess.run(command + files, cwd=folder, check=True, capture_output=True)
        seconds = time.perf_counter() - started
        megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        size = (folder / "proposals.json").stat().st_size / 1e6
    record = json.loads(done.stdout)
    print("videos\tproposals\tfile_mb\tseconds\tpeak_mb\tAUC")
    print(
        f"{record['videos']}\t{record['proposals']}\t{size:.0f}\t{seconds:.2f}\t"
        f"{megabytes:.0f}\t{record['AUC']:.2f}"
    )


if __name__ == "__main__":
    main()
