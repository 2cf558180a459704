"""Speed of the three video stages, and where their CPU time goes.

    python benchmarks/video_stages.py VIDEO… --processes 2

runs decoding, flow and both encoders over the videos, split between the processes as the workflow
splits shards, and prints wall and CPU seconds, times real time. With `--profile` one process runs
under cProfile and the share of CPU time inside decord, OpenCV, torch and HDF5 calls is printed.
"""

import argparse
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from actionspan.annotations.tables import SHARD_COLUMNS, write_videos
from actionspan.dataset.video_facts import probe_video

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}

# Parts of the names of C functions, and of the files of thin wrappers round them.
KERNELS = {
    "decord and PyAV": ("decord", "av.", "AVStream"),
    "OpenCV": ("cv2", "DISOpticalFlow", "OpticalFlow"),
    "torch": ("built-in method torch", "of 'torch"),
    "HDF5": ("h5py",),
}


def steps(folder: Path, number: int) -> list[list[str]]:
    """Return the commands of one shard."""
    shard, frames, flow, out = (
        str(folder / f"{number}.{suffix}") for suffix in ("txt", "frames.h5", "flow.h5", "h5")
    )
    return [
        ["video", "frames", "--shard", shard, "--out", frames],
        ["video", "flow", "--frames", frames, "--out", flow],
        ["features", "extract", "--frames", frames, "--flow", flow, "--out", out],
    ]


def run_commands(commands: list[list[str]]) -> None:
    """Run commands side by side, one thread each."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "actionspan", *command],
            stderr=subprocess.DEVNULL,
            env=ONE_THREAD,
        )
        for command in commands
    ]
    assert not any([process.wait() for process in running])


def measure(folder: Path, processes: int, seconds: float) -> None:
    """Run every stage over all shards and print a line for each."""
    print("| stage | wall s | CPU s | × real time |\n|---|---:|---:|---:|")
    walls, cpus = 0.0, 0.0
    for step in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.monotonic()
        run_commands([steps(folder, number)[step] for number in range(processes)])
        wall = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        walls, cpus = walls + wall, cpus + cpu
        name = " ".join(steps(folder, 0)[step][:2])
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {seconds / wall:.0f} |", flush=True)
    print(f"| all three | {walls:.1f} | {cpus:.1f} | {seconds / walls:.0f} |")


def profile(folder: Path) -> None:
    """Say where the CPU time of the first shard's commands goes.

    Each command runs once as it is, for its CPU seconds with start-up, and once under cProfile, for
    the seconds inside C functions (which a profiler of Python calls does not slow down).
    """
    total = 0.0
    spent: Counter[str] = Counter()
    for command in steps(folder, 0):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_commands([command])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        total += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        script = (
            "import cProfile, sys, time; from actionspan.cli import main; "
            "profiler = cProfile.Profile(time.process_time); "
            "profiler.runcall(main, sys.argv[2:]); profiler.dump_stats(sys.argv[1])"
        )
        stats = str(folder / "stats")
        subprocess.run(
            [sys.executable, "-c", script, stats, *command],
            check=True,
            stderr=subprocess.DEVNULL,
            env=ONE_THREAD,
        )
        for (file, _, name), (_, _, own, _, _) in pstats.Stats(stats).stats.items():  # type: ignore[attr-defined]
            kind = next(
                (
                    kind
                    for kind, parts in KERNELS.items()
                    if any(p in f"{file} {name}" for p in parts)
                ),
                "",
            )
            spent[kind] += own if kind else 0
    del spent[""]
    spent["start-up, Python and the rest"] = total - sum(spent.values())
    print("| where | CPU s | share |\n|---|---:|---:|")
    for kind, seconds in spent.most_common():
        print(f"| {kind} | {seconds:.1f} | {100 * seconds / total:.0f} % |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("videos", type=Path, nargs="+")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    processes = 1 if arguments.profile else arguments.processes
    videos = [probe_video(path.resolve()) for path in sorted(arguments.videos)]
    seconds = sum(video.duration_seconds for video in videos)
    with tempfile.TemporaryDirectory() as name:
        for number in range(processes):
            write_videos(Path(name) / f"{number}.txt", videos[number::processes], SHARD_COLUMNS)
        print(f"{len(videos)} videos, {seconds:.0f} s of video, {processes} processes\n")
        if arguments.profile:
            profile(Path(name))
        else:
            measure(Path(name), processes, seconds)


if __name__ == "__main__":
    main()
