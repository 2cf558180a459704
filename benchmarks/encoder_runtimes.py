"""What the encoders' runtime changes in the speed of the video stages, side by side.

    python benchmarks/encoder_runtimes.py VIDEO… --repeats 5 --processes 1

runs the three video stages with `features.encoders.runtime` eager and openvino in turn, with
start-up, and prints wall and CPU seconds of each stage, medians over the repeats, how many times as
fast the second is, paired, and the largest difference of features. `--old SRC` takes the sources of
another version in place of eager, `--precision` changes the second. A process has one thread and,
in turn, a core of its own.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import h5py
import numpy as np

from actionspan.annotations.tables import SHARD_COLUMNS, write_videos
from actionspan.dataset.video_facts import probe_video
from video_stages import steps

STAGES = ("video frames", "video flow", "features extract")


def run_stage(commands: list[list[str]], source: Path | None) -> tuple[float, float]:
    """Run commands side by side; return wall and CPU seconds."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if source:
        environment["PYTHONPATH"] = str(source)
    cores = sorted(os.sched_getaffinity(0))
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    running = []
    for number, command in enumerate(commands):
        words = ["taskset", "-c", str(cores[number % len(cores)])]
        words += [sys.executable, "-m", "actionspan", *command]
        running.append(subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment))
    assert not any([process.wait() for process in running])
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_all(folder: Path, processes: int, words: list[str], source: Path | None) -> np.ndarray:
    """Return wall and CPU seconds of each stage, (3, 2)."""
    times = []
    for place in range(len(STAGES)):
        commands = [steps(folder, number)[place] for number in range(processes)]
        if place == 2:
            commands = [command + words for command in commands]
        times.append(run_stage(commands, source))
    return np.array(times)


def features(folder: Path, processes: int) -> dict[str, np.ndarray]:
    """Return all features, by video and stream."""
    found = {}
    for number in range(processes):
        with h5py.File(folder / f"{number}.h5") as file:
            for name in file:
                found |= {f"{name}/{key}": file[name][key][:] for key in ("rgb", "flow")}
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("videos", type=Path, nargs="+")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--old", type=Path, help="src of another version, in place of eager")
    parser.add_argument("--precision", default="float32", help="of the second")
    arguments = parser.parse_args()
    videos = [probe_video(path.resolve()) for path in sorted(arguments.videos)]
    seconds = sum(video.duration_seconds for video in videos)
    eager = [] if arguments.old else ["--runtime", "eager"]
    new = ["--runtime", "auto", "--precision", arguments.precision]
    ways = [(eager, arguments.old), (new, None)]
    made: list[dict[str, np.ndarray]] = [{}, {}]
    times: list[list[np.ndarray]] = [[], []]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(arguments.processes):
            part = videos[number :: arguments.processes]
            write_videos(folder / f"{number}.txt", part, SHARD_COLUMNS)
        for _ in range(arguments.repeats):
            for way, (words, source) in enumerate(ways):
                times[way].append(run_all(folder, arguments.processes, words, source))
                made[way] = features(folder, arguments.processes)
    print(f"{len(videos)} videos, {seconds:.0f} s of video, {arguments.processes} processes\n")
    print("| stage | wall s | CPU s | as fast by wall (range) | by CPU (range) |")
    print("|---|---:|---:|---:|---:|")
    for place, stage in [*enumerate(STAGES), (slice(None), "all three")]:
        old, new = (
            [each[place].reshape(-1, 2).sum(axis=0) for each in times[way]] for way in (0, 1)
        )
        cells = [
            f"{median(a[k] for a in old):.1f} → {median(b[k] for b in new):.1f}" for k in (0, 1)
        ]
        for kind in (0, 1):
            ratios = [a[kind] / b[kind] for a, b in zip(old, new, strict=True)]
            cells.append(f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
        print(f"| {stage} | {' | '.join(cells)} |")
    wall = [seconds / median(each[:, 0].sum() for each in times[way]) for way in (0, 1)]
    print(f"\n{wall[0]:.0f} → {wall[1]:.0f} × real time")
    difference = max(np.abs(made[0][key] - made[1][key]).max() for key in made[0])
    largest = max(np.abs(each).max() for each in made[0].values())
    print(f"largest difference of features {difference:.1e}, largest feature {largest:.1f}")
    for stream in ("rgb", "flow"):
        keys = [key for key in made[0] if key.endswith(f"/{stream}")]
        away = sum(((made[0][key] - made[1][key]) ** 2).sum() for key in keys)
        size = sum((made[0][key] ** 2).sum() for key in keys)
        print(f"{stream}: {100 * np.sqrt(away / size):.1f} % off (root mean square)")


if __name__ == "__main__":
    main()
