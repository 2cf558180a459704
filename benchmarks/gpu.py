r"""Every figure that needs a GPU, in one run of some ten minutes: `make gpu`.

    python benchmarks/gpu.py --out docs/gpu.md

Runs the benchmarks below one after the other, each in a process of its own, and writes their tables
as one page; after each, so that what was measured stays where a later one fails or the machine
goes. It needs torch with CUDA and, for the exchanges, MPI; no video is decoded.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import torch

HERE = Path(__file__).parent
LATE = 240
"""Seconds after which a benchmark is ended."""


@dataclass(frozen=True)
class Part:
    """A benchmark, and what its table shows."""

    title: str
    says: str
    command: tuple[str, ...]
    across: tuple[str, str, tuple[str, ...]] | None = None
    """The columns (rows, columns, values) of a table that is printed in long form."""


PARTS = (
    Part(
        "Encoders",
        "Random weights, usual sizes. Milliseconds a frame of 256 × 340 pixels, from bytes in "
        "main memory to vectors there, with preprocessing (median of nine batches or clips); "
        "the most that PyTorch allocated; the largest difference to float32, relative to the "
        "largest value.",
        ("encoders.py", "--gpu", "--models", *"lite0 CLIP SigLIP DINOv2 ConvNeXt MAE JEPA".split()),
        ("encoder", "precision", ("ms a frame", "allocated, MB", "difference")),
    ),
    Part(
        "Training recognition networks",
        "Samples a second of whole training steps on random images of 224 pixels, batches of 64.",
        ("recognition_step.py", "--networks", "resnet50", "efficientnet_lite0", "--rounds", "3"),
    ),
    Part(
        "Tuning encoders within a budget",
        "EfficientNet-Lite0 below MTN, one video of 400 snippets of 224 pixels; the plan chooses "
        "the kept part. `held` is the most that PyTorch reserved.",
        ("gpu_tuning.py",),
    ),
    Part(
        "Pipelines over time",
        "The chain of 150 convolutions of PARTIME's first experiment, 32 maps, 128 pixels. Stages "
        "share a GPU if the machine has too few.",
        ("pipeline_cuda.py", "--size", "128", "--frames", "100", "--rounds", "3"),
    ),
    Part(
        "Exchanges of tensors on a GPU",
        "Two ranks, which share a GPU if the machine has one. Tensors are staged in main memory, "
        "because MPI may lack CUDA.",
        ("exchange.py", "--ranks", "2", "--launches", "3", "--device", "cuda"),
        ("bytes", "exchange", ("ms",)),
    ),
)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/gpu.md"))
    parser.add_argument("--only", nargs="*", help="words of titles")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu.py: torch sees no CUDA device; this benchmark needs one")
    page, failed = [head()], False
    for part in PARTS:
        if arguments.only and not any(word in part.title for word in arguments.only):
            continue
        begun = time.monotonic()
        output, error = run(part.command)
        failed |= bool(error)
        print(f"{part.title}: {time.monotonic() - begun:.0f} s{error and '; '}{error}", flush=True)
        command = " ".join(("python", f"benchmarks/{part.command[0]}", *part.command[1:]))
        text = "\n".join(
            [*markdown(output.splitlines(), part), *[f"\nNot to its end: {error}"] * bool(error)]
        )
        page.append(f"\n## {part.title}\n\n    {command}\n\n{part.says}\n\n{text}\n")
        arguments.out.write_text("".join(page), encoding="utf-8")
    sys.exit(failed)


def head() -> str:
    """Return the page's title and the machine."""
    cards = [torch.cuda.get_device_name(one) for one in range(torch.cuda.device_count())]
    return (
        "# Measurements on a GPU\n\n"
        "This page has the measurements that need a GPU, written by `make gpu` on "
        f"{date.today()}: {', '.join(cards)}, torch {torch.__version__}.\n"
    )


def run(command: Sequence[str]) -> tuple[str, str]:
    """Run a benchmark; return what it printed, and why it ended early or ""."""
    words = [sys.executable, str(HERE / command[0]), *command[1:]]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LATE)
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
        return printed.decode() if isinstance(printed, bytes) else printed, f"over {LATE} s"
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return done.stdout, last if done.returncode else ""


def markdown(lines: Sequence[str], part: Part) -> Iterator[str]:
    """Yield a table as Markdown; it may be Markdown already, or have tabs between its columns."""
    lines = [line for line in lines if line and not line.startswith(("#", "|---"))]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|")
        else line.replace("_", " ").split("\t")
        for line in lines
    ]
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
