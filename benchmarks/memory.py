"""Memory and CPU time of stochastic backpropagation against full training, with what is wanted.

    python benchmarks/memory.py --repeats 5

EfficientNet-Lite0 (untrained, norms folded) at 112 pixels and a temporal network, one video of 100
snippets, one thread. Growth of peak resident memory by building and three steps, each way in a
process of its own; CPU seconds of a step in turns in one process, medians of ratios of neighbours.
The last lines compare growth with what `plan_memory` expects: at most a tenth more.
"""

import argparse
import os
from statistics import median

from actionspan_papers.sbp.measured import FULL, Case, Counts, against, growth, seconds
from actionspan_papers.sbp.settings import MeasureSettings

SPLIT, EIGHTH = Case("sbp", "split", 0.25), Case("sbp", "split", 0.125)
REPLAY, EXACT = Case("sbp", "replay", 0.25), Case("sbp", "replay", 1.0)
FROZEN = Case("frozen", "split", 1.0)
MEMORY = {SPLIT: 0.40}  # of full training, at most
SECONDS = {SPLIT: 0.60, EIGHTH: 0.50, REPLAY: 0.70, EXACT: 1.45}
MEGABYTE = 2**20


def main() -> None:
    """Measure what the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="efficientnet_lite0")
    parser.add_argument("--input-size", type=int, default=112, help="pixels")
    parser.add_argument("--snippets", type=int, default=100)
    parser.add_argument("--piece", type=int, default=8, help="snippets run at once in replay")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    settings = MeasureSettings(**vars(given))
    memory(settings)
    time(settings)
    print(f"load {os.getloadavg()[0]:.1f}")


def memory(settings: MeasureSettings) -> None:
    """Print growth of peak memory against full training and against plans."""
    chosen = [FULL, SPLIT, EIGHTH, REPLAY, EXACT, FROZEN]
    counts = Counts(settings)
    grown = {case: growth(case, settings) for case in chosen}
    print("way         r      growth [MB]  of full  wanted  expected [MB]  growth / expected")
    for case, found in grown.items():
        if found is None or grown[FULL] is None:
            raise SystemExit("the system does not tell the peak memory of a process")
        expected = counts.expected(case)
        print(
            f"{named(case)}  {found / MEGABYTE:11.0f}  "
            f"{verdict(found / grown[FULL], MEMORY.get(case))}  {expected / MEGABYTE:13.0f}  "
            f"{verdict(found / expected, 1.10)}"
        )


def time(settings: MeasureSettings) -> None:
    """Print CPU seconds of a step against full training."""
    chosen = [FULL, *SECONDS, FROZEN]
    taken = seconds(chosen, settings)
    print("\nway         r      CPU s a step  of full  wanted")
    for case, times in zip(chosen, taken, strict=True):
        part = verdict(against(times, taken[0]), SECONDS.get(case))
        print(f"{named(case)}  {median(times):12.2f}  {part}")


def named(case: Case) -> str:
    """Return a way and its ratio as cells."""
    return f"{case.label:10}  {case.ratio:5.3f}"


def verdict(value: float, most: float | None) -> str:
    """Return a value, the most that is wanted, and whether it is kept."""
    if most is None:
        return f"{value:7.3f}        "
    return f"{value:7.3f}  {most:.2f} {'ok' if value <= most else 'NO'}"


if __name__ == "__main__":
    main()
