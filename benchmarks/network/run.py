"""Time all-reduces over an emulated network, and compare them with what the links allow.

    python benchmarks/network/run.py --mbit 100 --ranks 2-8 --mib 2 --out results/network.tsv

needs root, iproute2 and MPICH. Communication is real, by MPI over TCP; the links are emulated
(`cluster.py`), so every row is labelled so. The bytes that crossed them are counted by the kernel,
and rows with fewer than the algorithm must send (`formulas.py`) are refused.
"""

import argparse
import json
import math
import os
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cluster import MOST_HOSTS, Cluster, WireError, reason_missing
from formulas import ALGORITHMS, bound_seconds, duplex_seconds, payload_bytes

from actionspan.storage.writing import write_tsv

COLUMNS = (
    "label algorithm ranks bytes seconds_median seconds_min seconds_max repeats mbit "
    "burst_kib wire_bytes payload_bytes bound_seconds duplex_seconds"
).split()


def measure(
    ranks: int, sizes: list[int], algorithms: Iterable[str], repeats: int, mbit: float, burst: int
) -> list[dict[str, Any]]:
    """Return a row of `COLUMNS` for every size and algorithm on `ranks` workers.

    Raises:
        WireError: the links carried less than the algorithm must send.
    """
    algorithms = list(algorithms)
    hosts = ranks + ("ps" in algorithms)
    cells = [(algorithm, ranks, size) for size in sizes for algorithm in algorithms]
    launches = repeats + 1  # one to warm up
    arguments = ["-m", "mpi4py", str(Path(__file__).with_name("measure.py"))]
    arguments += ["--workers", str(ranks), "--repeats", str(repeats)]
    arguments += ["--bytes", *map(str, sizes), "--algorithms", *algorithms]
    with Cluster(hosts=hosts, mbit=mbit, burst_kib=burst) as cluster:
        job = cluster.run(
            arguments,
            ranks=hosts,
            must_send=launches * sum(payload_bytes(*cell) for cell in cells),
            timeout=120 + 3 * launches * sum(bound_seconds(*cell, mbit) for cell in cells),
        )
    rows = []
    for result in map(json.loads, job.output.splitlines()):
        cell = (result["algorithm"], result["ranks"], result["bytes"])
        payload = payload_bytes(*cell)
        if result["wire_bytes"] < payload:
            raise WireError(
                f"{cell[0]} on {ranks} ranks: the links carried {result['wire_bytes']:,} bytes an "
                f"all-reduce, but it must send {payload:,}"
            )
        seconds = result["seconds"]
        rows.append(
            {
                "label": "emulated",
                "algorithm": cell[0],
                "ranks": ranks,
                "bytes": cell[2],
                "seconds_median": round(statistics.median(seconds), 7),
                "seconds_min": round(min(seconds), 7),
                "seconds_max": round(max(seconds), 7),
                "repeats": repeats,
                "mbit": mbit,
                "burst_kib": burst,
                "wire_bytes": result["wire_bytes"],
                "payload_bytes": payload,
                "bound_seconds": bound_seconds(*cell, mbit),
                "duplex_seconds": duplex_seconds(*cell, mbit),
            }
        )
    if len(rows) != len(cells):
        raise RuntimeError(f"{len(rows)} results of {len(cells)} came back:\n{job.output}")
    return rows


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a Markdown table."""
    ring = {
        (row["ranks"], row["bytes"]): row["seconds_median"]
        for row in rows
        if row["algorithm"] == "ring"
    }
    lines = []
    for row in rows:
        seconds, fastest = row["seconds_median"], ring.get((row["ranks"], row["bytes"]))
        lines.append(
            f"| {row['ranks']} | {row['bytes'] / 1024:,.0f} | {row['algorithm']} "
            f"| {1e3 * seconds:,.2f} | {1e3 * row['seconds_min']:,.2f} "
            f"| {1e3 * row['seconds_max']:,.2f} "
            f"| {seconds / row['bound_seconds']:.2f} | {seconds / row['duplex_seconds']:.2f} "
            f"| {row['wire_bytes'] / row['payload_bytes']:.2f} "
            f"| {f'{seconds / fastest:.2f}' if fastest else ''} |"
        )
    return lines


HEAD = """\
| ranks | KiB | algorithm | median ms | least | most | × bound | × duplex bound | wire / payload \
| time / ring's |
|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"""


def worker_counts(text: str) -> list[int]:
    """Return the numbers of `2-8` or `2,4,8`.

    Raises:
        ArgumentTypeError: it is neither, or less than 2 workers are among them.
    """
    counts: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            counts += range(int(first), int(last or first) + 1)
    except ValueError:
        counts = []
    if not counts or min(counts) < 2 or max(counts) >= MOST_HOSTS:
        raise argparse.ArgumentTypeError(
            f"{text!r}: numbers of workers like 2-8 or 2,4,8, from 2 to {MOST_HOSTS - 1}"
        )
    return counts


def above_zero(text: str) -> float:
    """Return a number above 0.

    Raises:
        ArgumentTypeError: it is not.
    """
    try:
        if 0 < (number := float(text)) < math.inf:
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r}: a number above 0")


def count(text: str) -> int:
    """Return a whole number above 0.

    Raises:
        ArgumentTypeError: it is not.
    """
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number above 0")
    return int(text)


def main() -> None:
    """Measure, print the table, write the TSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=worker_counts, default="2-8", help="workers: 2-8, or 2,4,8")
    parser.add_argument(
        "--mib", type=above_zero, nargs="+", default=[2.0], help="message sizes, MiB"
    )
    parser.add_argument("--mbit", type=above_zero, default=100.0, help="rate of each link, Mbit/s")
    parser.add_argument(
        "--burst-kib", type=count, default=32, help="what an idle link carries at once, KiB"
    )
    parser.add_argument(
        "--repeats", type=count, default=5, help="all-reduces to take the median of"
    )
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    parser.add_argument("--out", type=Path, help="a TSV to write")
    arguments = parser.parse_args()
    if reason := reason_missing():
        print(f"skipped: {reason}")
        return
    rows: list[dict[str, Any]] = []
    sizes = [max(1, round(mib * 2**18)) * 4 for mib in arguments.mib]
    print(HEAD)
    for ranks in arguments.ranks:
        try:
            new = measure(
                ranks,
                sizes,
                arguments.algorithms,
                arguments.repeats,
                arguments.mbit,
                arguments.burst_kib,
            )
        except (WireError, TimeoutError, RuntimeError, OSError) as error:
            raise SystemExit(f"run.py: {error}") from None
        print("\n".join(table_lines(new)), flush=True)
        rows += new
        if arguments.out:
            write_tsv(arguments.out, COLUMNS, ([row[name] for name in COLUMNS] for row in rows))
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"\n{arguments.mbit:g} Mbit/s, emulated; {cores} cores, load {load:.1f} at the end")


if __name__ == "__main__":
    main()
