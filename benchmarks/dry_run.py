"""Seconds and memory of a dry run over many videos (stub files), and how many jobs there are.

python benchmarks/dry_run.py --videos 2000 20000
python benchmarks/dry_run.py --finished FOLDER     with nothing to do, in a folder of finished runs
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from actionspan.dataset.sharding import assign_shards

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--one-pass", action="store_true", help="with video.keep: false")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--finished", type=Path, help="a folder with a Snakefile and its results")
    arguments = parser.parse_args()
    print("| videos | jobs | seconds | CPU seconds | peak MiB |\n|---:|---:|---:|---:|---:|")
    if arguments.finished:
        _report("finished", arguments.finished, [], arguments.repeats)
        return
    peaks = {}
    for videos in arguments.videos:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _write_project(folder, videos, one_pass=arguments.one_pass)
            words = ["--snakefile", str(ROOT / "Snakefile"), "--configfile", "my.yaml"]
            words += ["--dry-run", "--quiet", "rules"]
            peaks[videos] = _report(f"{videos:,}", folder, words, arguments.repeats)
    fewest, most = min(peaks), max(peaks)
    if fewest < most:
        print(f"\nbytes a video: {(peaks[most] - peaks[fewest]) / (most - fewest):,.0f}")
    shards = len(assign_shards([str(index) for index in range(10**6)], "auto"))
    print(f"\na million videos: {shards:,} shards, 4 jobs each")


def _write_project(folder: Path, videos: int, *, one_pass: bool) -> None:
    (folder / "videos").mkdir()
    for index in range(videos):
        (folder / f"videos/video_{index:06d}.mp4").write_bytes(b"stub")
    (folder / "actions.csv").write_text("video,start,end,label\nvideo_000000,1,2,jump\n")
    (folder / "my.yaml").write_text(
        "dataset: {videos: videos, annotations: actions.csv}\ntemporal: {models: [mtn]}\n"
        f"video: {{keep: {str(not one_pass).lower()}}}\n"
    )


def _report(name: str, folder: Path, words: Sequence[str], repeats: int) -> int:
    """Print a row, each value the median; return the highest memory in bytes."""
    runs = [_measure(folder, words) for _ in range(repeats)]
    jobs, seconds, cpu, peak = (median(values) for values in zip(*runs, strict=True))
    print(f"| {name} | {jobs:,.0f} | {seconds:.1f} | {cpu:.1f} | {peak / 2**20:.0f} |", flush=True)
    return int(max(run[-1] for run in runs))


def _measure(folder: Path, words: Sequence[str]) -> tuple[int, float, float, int]:
    """Return the jobs, seconds, CPU seconds and bytes of one Snakemake."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *words]
    with tempfile.TemporaryFile("w+") as said:
        started = time.monotonic()
        child = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - started
        said.seek(0)
        text = said.read()
    if status:
        raise SystemExit(text)
    jobs = re.findall(r"^total +(\d+)", text, re.MULTILINE) or ["0"]
    return int(jobs[0]), seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 2**10


if __name__ == "__main__":
    main()
