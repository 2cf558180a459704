"""Seconds and memory of a dry run over many videos (stub files), and how many jobs there are.

python benchmarks/dry_run.py --videos 20000
"""

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from actionspan.dataset.sharding import assign_shards

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, default=20_000)
    parser.add_argument("--one-pass", action="store_true", help="with video.keep: false")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "videos").mkdir()
        for index in range(arguments.videos):
            (folder / f"videos/video_{index:06d}.mp4").write_bytes(b"stub")
        (folder / "actions.csv").write_text("video,start,end,label\nvideo_000000,1,2,jump\n")
        (folder / "my.yaml").write_text(
            "dataset: {videos: videos, annotations: actions.csv}\ntemporal: {models: [mtn]}\n"
            f"video: {{keep: {str(not arguments.one_pass).lower()}}}\n"
        )
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile"]
            + ["--cores", "2", "--dry-run", "--quiet", "rules", "--configfile", "my.yaml"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - started
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    jobs = re.findall(r"^total +(\d+)", done.stdout + done.stderr, re.MULTILINE)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10
    shards = len(assign_shards([str(index) for index in range(10**6)], "auto"))
    print("| videos | jobs | seconds | peak MiB |\n|---:|---:|---:|---:|")
    print(f"| {arguments.videos:,} | {int(jobs[0]):,} | {seconds:.1f} | {peak:.0f} |")
    print(f"\na million videos: {shards:,} shards, 4 jobs each")


if __name__ == "__main__":
    main()
