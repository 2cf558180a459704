"""How long proposals take: PGM → BSP → PEM → Soft-NMS on as many videos as ActivityNet validates.

    python benchmarks/proposals.py [--videos 4728] [--inputs FOLDER]

Writes random probabilities to a temporary folder and prints two tables: the seconds of each part,
called on arrays one video at a time (Soft-NMS: on many), and the seconds and peak memory of the
two commands users call, each in a process of its own, with reading, writing and start-up.
Everything runs on one core. With `--inputs` the probabilities and an evaluator are written there,
and nothing is measured.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import torch

from actionspan.proposals import bsp_features, generate_candidates
from actionspan.proposals.evaluator import ProposalEvaluator, save_evaluator
from actionspan.proposals.suppression import TOGETHER, soft_nms_of_many
from actionspan.storage.writing import create_h5

PARTS = ("PGM", "BSP", "PEM", "Soft-NMS")


def write_input(folder: Path, videos: int) -> None:
    """Write random probabilities of 100 bins a video, and an evaluator of random weights."""
    generator = np.random.default_rng(1)
    with create_h5(folder / "probabilities.h5", "benchmark") as file:
        file["probabilities"] = generator.random((videos, 100, 3), dtype=np.float32)
        file["duration_seconds"] = generator.uniform(5, 240, videos)
        text = h5py.string_dtype()
        file.create_dataset("video_id", data=[f"v{i:06}" for i in range(videos)], dtype=text)
        file.create_dataset("subset", data=["validation"] * videos, dtype=text)
    torch.manual_seed(1)
    save_evaluator(folder / "pem.safetensors", ProposalEvaluator(), "benchmark")


def time_parts(videos: int) -> tuple[dict[str, float], int]:
    """Return the seconds of each part over all videos, and the number of candidates."""
    generator = np.random.default_rng(1)
    evaluator = ProposalEvaluator()
    seconds = dict.fromkeys(PARTS, 0.0)
    candidates = 0

    @contextmanager
    def clock(part: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds[part] += time.perf_counter() - started

    scored: list[tuple[np.ndarray, np.ndarray, float]] = []
    for number in range(1, videos + 1):
        probabilities = generator.random((100, 3), dtype=np.float32)
        with clock("PGM"):
            segments, scores = generate_candidates(probabilities)
        with clock("BSP"):
            features = bsp_features(probabilities[:, 1], segments)
        with clock("PEM"):
            iou = evaluator.evaluate(features)
        candidates += len(segments)
        scored.append((segments, scores[:, 0] * scores[:, 1] * iou, 1.0))
        if len(scored) == TOGETHER or number == videos:
            with clock("Soft-NMS"):
                soft_nms_of_many(scored)
            scored = []
    return seconds, candidates


def time_command(folder: Path, words: str) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of one `actionspan proposals` command."""
    # ru_maxrss of all children is that of the largest: each command gets a parent of its own.
    measure = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-m", "actionspan", "proposals", *words.split()]
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", measure, *command], cwd=folder, check=True, capture_output=True
    )
    return time.perf_counter() - started, float(done.stdout)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=4728)
    parser.add_argument("--inputs", type=Path, help="a folder for what commands read")
    arguments = parser.parse_args()
    videos = arguments.videos
    if arguments.inputs:
        arguments.inputs.mkdir(parents=True, exist_ok=True)
        write_input(arguments.inputs, videos)
        return
    torch.set_num_threads(1)
    seconds, candidates = time_parts(videos)
    seconds["all"] = sum(seconds.values())
    print("part\tvideos\tcandidates\tseconds\tms_per_video")
    for part, took in seconds.items():
        print(f"{part}\t{videos}\t{candidates}\t{took:.2f}\t{took / videos * 1e3:.3f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_input(folder, videos)
        print("\ncommand\tvideos\tseconds\tpeak_mb\tout_mb")
        for step, flags, made in (
            ("candidates", "--probabilities probabilities.h5 --out candidates.h5", "candidates.h5"),
            (
                "generate",
                "--candidates candidates.h5 --evaluator pem.safetensors "
                "--out-json proposals.json --out-csv proposals.csv",
                "proposals.json",
            ),
        ):
            took, megabytes = time_command(folder, f"{step} {flags}")
            size = (folder / made).stat().st_size / 1e6
            print(f"{step}\t{videos}\t{took:.2f}\t{megabytes:.0f}\t{size:.0f}")


if __name__ == "__main__":
    main()
