"""How the own memory and the CPU time of each step grow with the number of videos.

    python benchmarks/size.py --videos 2000 20000 200000

Simulates videos (features.h5, annotations, videos.tsv) and runs
from training to scoring each step as the command that users call, in a process of its own, with few
channels, epochs and candidates so that a large set fits a small machine. A row of the table has

- own memory: the highest that was seen of anonymous and shared memory, looked at every 5 ms;
- resident memory: the highest ever, with maps of files, which the system can drop;
- how many bytes own memory grew for each video more than in the smaller set before;
- CPU seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulated_features import Simulated, simulate

MIB = 2**20
_KNOWN = 1000  # different videos that the simulation draws from
_INTERVAL = 0.005  # seconds
_OWN = ("RssAnon", "RssShmem")

STEPS = {
    "temporal train": "--features features.h5 --annotations annotations.json --model origin"
    " --hidden 16 --epochs 1 --batch-size 64 --keep last --out run",
    "temporal predict": "--model run/model.safetensors --features features.h5"
    " --out probabilities.h5",
    "proposals candidates": "--probabilities probabilities.h5 --candidates {candidates}"
    " --out candidates.h5",
    "proposals train": "--candidates candidates.h5 --annotations annotations.json --epochs 2"
    " --out pem.safetensors --out-log pem.tsv",
    "proposals classifier": "--features features.h5 --annotations annotations.json"
    " --out classifier.safetensors --out-log classifier.tsv",
    "proposals generate": "--candidates candidates.h5 --evaluator pem.safetensors"
    " --classifier classifier.safetensors --features features.h5"
    " --out-json proposals.json --out-csv proposals.csv",
    "evaluation evaluate": "--proposals proposals.json --annotations annotations.json"
    " --videos videos.tsv --out evaluation.json --out-videos evaluation.tsv",
}


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a process used, in bytes and seconds."""

    own: int
    resident: int
    cpu_seconds: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, nargs="+", default=[2000, 20_000])
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--candidates", type=int, default=100, help="most of a video")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--folder", type=Path, help="keep the files here, and use them again")
    arguments = parser.parse_args()
    print("| step | videos | own MiB | resident MiB | bytes a video | CPU s |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    before: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        for videos in sorted(arguments.videos):
            folder = (arguments.folder or Path(name)) / str(videos)
            if not (folder / "videos.tsv").exists():
                write_input(folder, videos, arguments.channels)
            for step in arguments.steps:
                used = run(folder, step, STEPS[step].format(candidates=arguments.candidates))
                growth = ""
                if step in before:
                    fewer, own = before[step]
                    growth = f"{(used.own - own) / (videos - fewer):.0f}"
                before[step] = videos, used.own
                print(
                    f"| `{step}` | {videos:,} | {used.own / MIB:.0f} | {used.resident / MIB:.0f} "
                    f"| {growth} | {used.cpu_seconds:.0f} |",
                    flush=True,
                )


def write_input(folder: Path, videos: int, channels: int) -> None:
    """Write features.h5, annotations.json and videos.tsv of simulated videos.

    One in two is for training, the others for validation; a video has 1 to 3 instances.
    """
    generator = np.random.default_rng(1)
    database = {}
    for number in range(_KNOWN):
        duration = float(generator.uniform(5, 240))
        segments = np.sort(generator.uniform(0, duration, (1 + number % 3, 2)), axis=1)
        database[f"known_{number:04d}"] = {
            "subset": ("training", "validation")[number // 3 % 2],
            "duration": duration,
            "annotations": [
                {"segment": segment, "label": f"class {number // 6 % 5}"}
                for segment in segments.tolist()
            ],
        }
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "known.json"
    known.write_text(json.dumps({"database": database}), encoding="utf-8")
    how = Simulated(videos=videos, channels=channels)
    simulate([known], None, folder / "features.h5", folder / "annotations.json", how)
    digits = max(5, len(str(videos)))
    with (folder / "videos.tsv").open("w", encoding="utf-8") as table:
        table.write("video_id\tfps\n")
        for number in range(1, videos + 1):
            table.write(f"simulated_{number:0{digits}d}\t25.0\n")


def run(folder: Path, step: str, words: str) -> Usage:
    """Run a command and watch its memory."""
    command = [sys.executable, "-m", "actionspan", *step.split(), *words.split()]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        own = resident = 0
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            held = memory(process.pid)
            own = max(own, sum(held.get(name, 0) for name in _OWN))
            resident = max(resident, held.get("VmHWM", 0))
            time.sleep(_INTERVAL)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{step}: {(folder / 'log.txt').read_text()[-2000:]}")
    return Usage(own=own, resident=resident, cpu_seconds=usage.ru_utime + usage.ru_stime)


def memory(process: int) -> dict[str, int]:
    """Return what Linux says of the memory of a process, in bytes; nothing of one that ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    pairs = (line.partition(":")[::2] for line in lines if line.endswith("kB"))
    return {name: int(value.split()[0]) * 1024 for name, value in pairs}


if __name__ == "__main__":
    main()
