"""How long scoring takes: reading and scoring a proposals file as large as ActivityNet's.

    python benchmarks/evaluation.py [--videos 4728] [--proposals 100] [--inputs FOLDER]

Writes random ground truth and proposals to a temporary folder, scores them by the commands that
users call, each in a process of its own, and prints one line a command: `actionspan score` by each
protocol, and `actionspan evaluation evaluate`, which does all three and bootstraps AUC; then what
reading the proposals takes in this process, and `json.load` of the same file. With `--inputs` the
files are written there, and nothing is measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from actionspan.evaluation.files import read_proposals
from actionspan.proposals.segments import result_rows, write_proposals


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
    rates = "".join(f"{video_id}\t25.0\n" for video_id in database)
    (folder / "videos.tsv").write_text(f"video_id\tfps\n{rates}", encoding="utf-8")
    (folder / "truth.json").write_text(json.dumps({"database": database}), encoding="utf-8")
    write_proposals(made.items(), folder / "proposals.json")


SCORE = "score --ground-truth truth.json --proposals proposals.json --json --protocol"
COMMANDS = {
    "score activitynet": f"{SCORE} activitynet",
    "score thumos14": f"{SCORE} thumos14 --videos videos.tsv",
    "score detection": f"{SCORE} detection",
    "evaluate": "evaluation evaluate --annotations truth.json --proposals proposals.json"
    " --videos videos.tsv --out out.json --out-videos out.tsv",
}


def measure(folder: Path, words: str) -> tuple[float, float]:
    """Run one command; return its seconds and its peak memory in MB."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "actionspan", *words.split()]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def load(path: Path) -> object:
    """Read a file as the standard library does."""
    with path.open(encoding="utf-8") as file:
        return json.load(file)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=4728)
    parser.add_argument("--proposals", type=int, default=100, help="a video")
    parser.add_argument("--inputs", type=Path, help="a folder for what commands read")
    arguments = parser.parse_args()
    if arguments.inputs:
        arguments.inputs.mkdir(parents=True, exist_ok=True)
        write_input(arguments.inputs, arguments.videos, arguments.proposals)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_input(folder, arguments.videos, arguments.proposals)
        size = (folder / "proposals.json").stat().st_size / 1e6
        print("command\tvideos\tproposals\tfile_mb\tseconds\tpeak_mb")
        for title, words in COMMANDS.items():
            seconds, megabytes = measure(folder, words)
            total = arguments.videos * arguments.proposals
            print(
                f"{title}\t{arguments.videos}\t{total}\t{size:.0f}\t{seconds:.2f}\t{megabytes:.0f}"
            )
        for name, read in (("json.load", load), ("reading", read_proposals)):
            begun = time.process_time()
            read(folder / "proposals.json")
            print(f"{name}: {time.process_time() - begun:.2f} CPU seconds")


if __name__ == "__main__":
    main()
