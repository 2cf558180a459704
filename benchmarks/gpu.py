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


PARTS = (
    Part(
        "Encoders",
        "Random weights, usual sizes. Milliseconds a frame of 256 × 340 pixels, from bytes in "
        "main memory to vectors there, preprocessing included (median of nine batches or clips); "
        "the most that PyTorch allocated; and the furthest that a value is from float32's, as "
        "part of the largest.",
        ("encoders.py", "--gpu", "--models", *"lite0 CLIP SigLIP DINOv2 ConvNeXt MAE JEPA".split()),
    ),
    Part(
        "Training recognition networks",
        "Samples a second of whole training steps on random pictures of 224 pixels, batches of 64.",
        ("recognition_step.py", "--networks", "resnet50", "efficientnet_lite0", "--rounds", "3"),
    ),
    Part(
        "Tuning encoders within a budget",
        "EfficientNet-Lite0 below MTN, one video of 400 snippets of 224 pixels; the plan chooses "
        "how much is kept. `held` is the most that PyTorch reserved.",
        ("gpu_tuning.py",),
    ),
    Part(
        "Pipelines over time",
        "The chain of 150 convolutions of PARTIME's first experiment, 32 maps, 128 pixels. Stages "
        "share a GPU where there are too few.",
        ("pipeline_cuda.py", "--size", "128", "--frames", "100", "--rounds", "3"),
    ),
    Part(
        "Exchanges of tensors on a GPU",
        "Two ranks, which share a GPU where there is one. Tensors are staged in main memory, as "
        "MPI need not know of CUDA. `ratio`: how many times the ring is as fast.",
        ("exchange.py", "--ranks", "2", "--launches", "3", "--device", "cuda"),
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
            [*markdown(output.splitlines()), *[f"\nNot to its end: {error}"] * bool(error)]
        )
        page.append(f"\n## {part.title}\n\n    {command}\n\n{part.says}\n\n{text}\n")
        arguments.out.write_text("".join(page), encoding="utf-8")
    sys.exit(failed)


def head() -> str:
    """Return the page's title and the machine."""
    cards = [torch.cuda.get_device_name(one) for one in range(torch.cuda.device_count())]
    return (
        "# Measurements on a GPU\n\n"
        f"Written by `make gpu` on {date.today()}: {', '.join(cards)}, torch {torch.__version__}.\n"
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


def markdown(lines: Sequence[str]) -> Iterator[str]:
    """Yield a table as Markdown; it may be one already, or have tabs between its columns."""
    rows = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(rows):
        if line.startswith("|"):
            yield line
            continue
        cells = line.replace("_", " ").split("\t")
        yield f"| {' | '.join(cells)} |"
        if not number:
            yield "|" + "---|" * len(cells)


if __name__ == "__main__":
    main()
