"""Which exchange is the fastest for which message on how many ranks, by simulation.

    python benchmarks/crossover.py --calibration network.tsv \
        --out-table crossover.tsv --out-figure crossover.svg

Fits the simulator's three costs to all-reduces that `benchmarks/network/run.py` timed on up to 4
ranks, says how wrong it then is on 5…8, and simulates the ring, a central parameter server,
sharded servers and MPI_Allreduce for 1 KiB…256 MiB on 2…4,096 ranks. Ring and servers are the
engine's own schedules; MPI_Allreduce is a model of the library.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from actionspan.storage.writing import read_tsv, write_tsv
from crossover_figure import draw
from simulation.calibration import FITTED_RANKS, Row, calibrate, errors
from simulation.ranks import Costs
from simulation.rounds import ALGORITHMS, simulated_seconds

COMPARED = ("ring", "ps", "ps_sharded", "mpi")
COLUMNS = ("label", "algorithm", "ranks", "bytes", "seconds")
SIZES = tuple(2**power for power in range(10, 29))
POWERS = tuple(2**power for power in range(1, 13))
BETWEEN = tuple(3 * 2**power for power in range(11))
MIB = 2**20
ALIKE = 0.02  # two exchanges whose seconds differ by less are not told apart
SMALL_BYTES = 65_536

Seconds = dict[tuple[str, int, int], float]


def read_rows(path: Path, burst_kib: float) -> tuple[list[Row], float]:
    """Return the measured rows and the bytes that the links let through at once.

    Args:
        path: A table with columns algorithm, ranks, bytes and seconds_median.
        burst_kib: Of the links, in KiB, where the table has no such column.
    """
    table = read_tsv(path)
    bursts = {1024 * float(row.get("burst_kib", burst_kib)) for row in table}
    if len(bursts) != 1:
        raise SystemExit(f"{path}: rows with one and the same burst_kib are needed")
    rows = [
        Row(row["algorithm"], int(row["ranks"]), int(row["bytes"]), float(row["seconds_median"]))
        for row in table
    ]
    return rows, bursts.pop()


def error_lines(rows: Sequence[Row], costs: Costs) -> list[str]:
    """Return a Markdown table of relative errors on ranks that were not fitted."""
    judged = errors(rows, costs)
    lines = [
        "| algorithm | ranks | KiB | rows | median error | worst error | at |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for algorithm, small in itertools.product(ALGORITHMS, (False, True)):
        part = [
            (error, row)
            for row, error in judged
            if row.algorithm == algorithm and (row.bytes < SMALL_BYTES) == small
        ]
        if part:
            typical = statistics.median(abs(error) for error, _ in part)
            worst, row = max(part, key=lambda pair: abs(pair[0]))
            ranks = sorted({row.ranks for _, row in part})
            lines.append(
                f"| {algorithm} | {ranks[0]}–{ranks[-1]} | {'< 64' if small else '≥ 64'} "
                f"| {len(part)} | {100 * typical:.1f} % | {100 * worst:+.1f} % "
                f"| {row.ranks} ranks, {row.bytes // 1024} KiB |"
            )
    return lines


def simulate(costs: Costs, numbers: Sequence[int], sizes: Sequence[int]) -> Seconds:
    """Return the seconds of every compared exchange, until the last rank is done."""
    return {
        (algorithm, ranks, size): float(simulated_seconds(algorithm, ranks, size, costs).max())
        for algorithm, ranks, size in itertools.product(COMPARED, numbers, sizes)
    }


def fastest(seconds: Seconds, ranks: int, size: int) -> str:
    """Return the names of the exchanges that are the fastest, or nearly so."""
    times = {name: seconds[name, ranks, size] for name in COMPARED}
    least = min(times.values())
    return " = ".join(name for name, value in times.items() if value <= least * (1 + ALIKE))


def crossover_lines(seconds: Seconds, numbers: Sequence[int]) -> list[str]:
    """Return for each number of ranks who is the fastest from which message size on."""
    lines = []
    for ranks in numbers:
        names = [(fastest(seconds, ranks, size), size) for size in SIZES]
        runs = [(name, next(group)[1]) for name, group in itertools.groupby(names, lambda x: x[0])]
        said = "; ".join(f"{_binary(size)}: {name}" for name, size in runs)
        lines.append(f"{ranks:>5} ranks  {said}")
    return lines


def _binary(size: int) -> str:
    """Return a number of bytes in KiB or MiB."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"


def main() -> None:
    """Calibrate, judge, simulate, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibration", type=Path, required=True, help="a TSV of network/run.py")
    parser.add_argument(
        "--burst-kib",
        type=float,
        default=32.0,
        help="what the links let through at once, where the TSV does not say; default %(default)s",
    )
    parser.add_argument("--out-table", type=Path, required=True)
    parser.add_argument("--out-figure", type=Path, required=True, help=".svg or .png")
    arguments = parser.parse_args()
    started = time.perf_counter()
    rows, burst = read_rows(arguments.calibration, arguments.burst_kib)
    costs = calibrate(rows, burst)
    print(
        f"fitted to {sum(row.ranks <= FITTED_RANKS for row in rows)} emulated rows on up to "
        f"{FITTED_RANKS} ranks: alpha {1e6 * costs.alpha:.1f} µs a message, "
        f"beta {1e9 * costs.beta:.2f} ns a byte ({8e-6 / costs.beta:.1f} Mbit/s), "
        f"gamma {1e9 * costs.gamma:.2f} ns a byte added; bursts of {burst / 1024:g} KiB\n"
    )
    print("\n".join(error_lines(rows, costs)), flush=True)
    network = costs._replace(burst=0.0)  # what the emulated links let through no other network does
    seconds = simulate(network, sorted({*POWERS, *BETWEEN}), SIZES)
    for title, numbers in (("powers of two", POWERS), ("between them", BETWEEN)):
        print(f"\nfastest (within {100 * ALIKE:g} %), {title}, from message size:")
        print("\n".join(crossover_lines(seconds, numbers)))
    write_tsv(
        arguments.out_table,
        COLUMNS,
        [("simulated", *key, f"{value:.9g}") for key, value in sorted(seconds.items())],
    )
    draw(arguments.out_figure, seconds, rows, costs, (POWERS, BETWEEN), SIZES)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
