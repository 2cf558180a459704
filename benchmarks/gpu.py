r"""Every figure that needs a GPU, in one run of at most eight minutes: `make gpu`.

    python benchmarks/gpu.py --out docs/gpu.md

Runs the benchmarks below one after the other, each in a process of its own, and writes their tables
as one page; after each, so that what was measured stays where a later one fails or the machine
goes. Figures that claims of the papers take go to `src/actionspan_papers/gpu.tsv` too, so their
benchmarks come first; rows that are not measured again stay there. It needs torch with CUDA and,
for the exchanges, MPI; no video is decoded.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import torch

from actionspan.storage.writing import read_tsv, write_tsv
from actionspan_papers.evidence import COLUMNS, MEASUREMENTS, read_measurements

HERE = Path(__file__).parent
_LATE, _TOTAL = 150, 480
"""Seconds after which a benchmark is ended, and after which none runs."""


@dataclass(frozen=True)
class Part:
    """A benchmark, and what its table shows."""

    title: str
    says: str
    command: tuple[str, ...]
    across: tuple[str, str, tuple[str, ...]] | None = None
    """The columns (rows, columns, values) of a table that is printed in long form."""
    cases: tuple[str, ...] = ()
    """The columns that name a case in the evidence on claims."""
    quantities: Mapping[str, tuple[str, str] | tuple[()]] = field(default_factory=dict)
    """The columns that are evidence, each with the columns of its least and most, if any."""

    @property
    def benchmark(self) -> str:
        """Its name in the evidence."""
        return Path(self.command[0]).stem


_PIPELINE = ("R", "work", "stages", "kind")
_MS_PER_FRAME: Mapping[str, tuple[str, str]] = {"ms_per_frame": ("least", "most")}
PARTS = (
    Part(
        "Pipelines over time",
        "The chain of 150 convolutions of PARTIME's first experiment, 32 maps, frames of R × R "
        "pixels. Stages share a GPU if the machine has too few.",
        ("pipeline_cuda.py", "--size", "128", "--frames", "60", "--rounds", "3"),
        cases=_PIPELINE,
        quantities=_MS_PER_FRAME,
    ),
    Part(
        "Pipelines over time, larger frames",
        "The same chain in one stage.",
        ("pipeline_cuda.py", *"--size 512 --stages 1 --frames 30 --rounds 2".split()),
        cases=_PIPELINE,
        quantities=_MS_PER_FRAME,
    ),
    Part(
        "Exchanges of tensors on a GPU",
        "Two ranks, which share a GPU if the machine has one. Tensors are staged in main memory, "
        "because MPI may lack CUDA.",
        ("exchange.py", *"--ranks 2 --launches 3 --kept 1 --device cuda".split()),
        ("bytes", "exchange", ("ms",)),
        cases=("ranks", "bytes", "exchange"),
        quantities={"ms": ("ms_least", "ms_most")},
    ),
    Part(
        "Training Video Swin",
        "Steps on 4 clips of 32 frames at 224 × 224 pixels, float32, explicit attention, AdamW; "
        "SBP keeps a quarter. The most that PyTorch allocated, weights and moments included.",
        ("swin_step.py", "--repeats", "5"),
        cases=("network", "way"),
        quantities={"GiB allocated": (), "seconds a step": ("least", "most")},
    ),
    Part(
        "Encoders",
        "Random weights, usual sizes. Milliseconds a frame of 256 × 340 pixels, from bytes in "
        "main memory to vectors there, with preprocessing (median of nine batches or clips); "
        "the most that PyTorch allocated; the largest difference to float32, relative to the "
        "largest value.",
        ("encoders.py", "--gpu", "--models", *"lite0 CLIP SigLIP DINOv2 JEPA".split()),
        ("encoder", "precision", ("ms a frame", "allocated, MB", "difference")),
    ),
    Part(
        "Training recognition networks",
        "Samples a second of whole training steps on random images of 224 pixels, batches of 64.",
        ("recognition_step.py", "--networks", "resnet50", "efficientnet_lite0", "--rounds", "2"),
    ),
    Part(
        "Tuning encoders within a budget",
        "EfficientNet-Lite0 below MTN, one video of 400 snippets of 224 pixels; the plan chooses "
        "the kept part. `held` is the most that PyTorch reserved.",
        ("gpu_tuning.py",),
    ),
)


def main() -> None:
    """Measure and write the page and the evidence."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/gpu.md"))
    parser.add_argument("--out-evidence", type=Path, default=MEASUREMENTS)
    parser.add_argument("--only", nargs="*", help="words of titles")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu.py: torch sees no CUDA device; this benchmark needs one")
    only = arguments.only
    parts = [each for each in PARTS if not only or any(word in each.title for word in only)]
    sys.exit(measure(parts, arguments.out, arguments.out_evidence, place()))


def measure(parts: Sequence[Part], page: Path, evidence: Path, where: tuple[str, str, str]) -> bool:
    """Run benchmarks and write their tables; return whether one was stopped or failed.

    Args:
        parts: The benchmarks.
        page: The page to write.
        evidence: The table of figures that claims take; other rows of it stay.
        where: Machine, version of torch and date.
    """
    text, failed, started = head(where), False, time.monotonic()
    read_measurements(evidence)  # a wrong row is an error now, not after the run
    for part in parts:
        # 1. its table, as far as it came in its time
        begun = time.monotonic()
        output, error = run(part.command, min(_LATE, _TOTAL - (begun - started)))
        failed |= bool(error)
        rows = table(output.splitlines())
        # 2. a section of the page
        took = f"{time.monotonic() - begun:.0f} s"
        print(f"{part.title}: {took}{error and '; '}{error}", flush=True)
        command = " ".join(("python", f"benchmarks/{part.command[0]}", *part.command[1:]))
        lines = [f"{part.says} The benchmark took {took}.", "", *markdown(rows, part)]
        lines += ["", f"Not to its end: {error}"] * bool(error)
        text += "\n".join(["", f"## {part.title}", "", f"    {command}", "", *lines, ""])
        page.write_text(text, encoding="utf-8")
        # 3. evidence
        write_evidence(evidence, evidence_rows(rows, part, where))
    return failed


def head(where: tuple[str, str, str]) -> str:
    """Return the page's title and the machine."""
    machine, version, day = where
    return (
        "# Measurements on a GPU\n\n"
        "This page has the measurements that need a GPU, written by `make gpu` on "
        f"{day}: {machine}, torch {version}. Figures that the papers' claims take are rows of "
        "`src/actionspan_papers/gpu.tsv` too.\n"
    )


def place() -> tuple[str, str, str]:
    """Return the machine's GPUs, the version of torch and the date."""
    cards = [torch.cuda.get_device_name(one) for one in range(torch.cuda.device_count())]
    return ", ".join(cards), torch.__version__, str(date.today())


def run(command: Sequence[str], seconds: float) -> tuple[str, str]:
    """Run a benchmark; return what it printed, and why it ended early or ""."""
    if seconds <= 0:
        return "", "no time was left"
    words = [sys.executable, str(HERE / command[0]), *command[1:]]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
        printed = printed.decode() if isinstance(printed, bytes) else printed
        return printed[: printed.rfind("\n") + 1], f"ended after {seconds:.0f} s"
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return done.stdout, last if done.returncode else ""


def table(lines: Sequence[str]) -> list[list[str]]:
    """Return the cells of a table, its header first, as Markdown or with tabs between columns."""
    lines = [line for line in lines if line and not line.startswith(("#", "|---"))]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|")
        else line.split("\t")
        for line in lines
    ]


def evidence_rows(
    rows: Sequence[Sequence[str]], part: Part, where: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a part's evidence, in the order of COLUMNS; empty cells are none."""
    for cells in rows[1:]:
        row = dict(zip(rows[0], cells, strict=True))
        case = ", ".join(row[name] for name in part.cases)
        for quantity, ends in part.quantities.items():
            if row[quantity]:
                numbers = [row[quantity], *([row[end] for end in ends] or ["", ""])]
                yield (part.benchmark, case, quantity.replace("_", " "), *numbers, *where)


def write_evidence(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write rows of evidence; rows of the file with another case or quantity stay."""
    old = [
        tuple(row[name] for name in COLUMNS) for row in (read_tsv(path) if path.exists() else [])
    ]
    kept = {row[:3]: row for row in (*old, *map(tuple, rows))}
    write_tsv(path, list(COLUMNS), list(kept.values()))


def markdown(rows: Sequence[Sequence[str]], part: Part) -> Iterator[str]:
    """Yield a table as Markdown."""
    rows = [[cell.replace("_", " ") for cell in row] for row in rows]
    if rows and part.across:
        rows = wide(rows, *part.across)
    if rows and {"least", "most"} <= set(rows[0]):
        rows = ranges(rows)
    for number, cells in enumerate(rows):
        yield f"| {' | '.join(cells)} |"
        if not number:
            yield "|" + "---|" * len(cells)


def wide(
    rows: Sequence[Sequence[str]], index: str, over: str, values: Sequence[str]
) -> list[list[str]]:
    """Return a table in long form with a row for each `index` and columns for each `over`.

    A column with the same value in all rows, such as the difference of the reference, is left out.
    """
    head, *body = rows
    records = [dict(zip(head, row, strict=True)) for row in body]
    keys = list(dict.fromkeys(row[index] for row in records))
    found = {(row[index], value, row[over]): row[value] for row in records for value in values}
    columns = [
        (value, name)
        for value in values
        for name in dict.fromkeys(row[over] for row in records)
        if len({found.get((key, value, name)) for key in keys}) > 1
    ]
    return [
        [index, *(f"{value}, {name}" for value, name in columns)],
        *([key, *(found.get((key, *column), "") for column in columns)] for key in keys),
    ]


def ranges(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table with the columns `least` and `most` in brackets behind the one before."""
    least, most = rows[0].index("least"), rows[0].index("most")
    kept = [column for column in range(len(rows[0])) if column not in (least, most)]
    joined = [list(rows[0])]
    for row in rows[1:]:
        cells = list(row)
        cells[least - 1] += f" ({cells[least]}–{cells[most]})"
        joined.append(cells)
    return [[cells[column] for column in kept] for cells in joined]


if __name__ == "__main__":
    main()
