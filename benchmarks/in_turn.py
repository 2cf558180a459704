"""One command of two versions, in turn: seconds, CPU seconds and memory.

    python benchmarks/in_turn.py OLD/src proposals generate --candidates c.h5 … --out-json {}.json

`OLD/src` holds the sources of another version; the words after it are a command of `actionspan`, in
which `{}` becomes `old` or `new`. Prints the medians of the seconds and of the CPU seconds of both,
how many times as fast the new one is by either (median of neighbours, least and most), and the most
memory that either took.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median


def measure(words: list[str], source: Path | None) -> tuple[float, float, float]:
    """Run a command; return its seconds, its CPU seconds and its peak memory in MiB."""
    environment = {**os.environ, "PYTHONPATH": str(source)} if source else None
    command = [sys.executable, "-m", "actionspan", *words]
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    seconds = time.perf_counter() - begun
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print the row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("old", type=Path, metavar="OLD/src")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="of a command")
    arguments = parser.parse_args()
    versions = {"old": arguments.old.resolve(), "new": None}
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in versions}
    for _ in range(arguments.repeats):
        for name, source in versions.items():
            words = [word.replace("{}", name) for word in arguments.words]
            taken[name].append(measure(words, source))
    for place, what in enumerate(("seconds", "CPU seconds")):
        old, new = ([each[place] for each in taken[name]] for name in versions)
        ratios = [before / after for before, after in zip(old, new, strict=True)]
        range_ = f"{median(ratios):.2f} times ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"{what}: {median(old):.2f} -> {median(new):.2f}, {range_}")
    old, new = (max(each[2] for each in taken[name]) for name in versions)
    print(f"MiB: {old:.0f} -> {new:.0f}")


if __name__ == "__main__":
    main()
