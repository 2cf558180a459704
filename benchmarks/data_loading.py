"""How long training waits for its data: plain and prefetched batches of a 20,000-video file.

    python benchmarks/data_loading.py --annotations anet_anno_action.json \
        --video-info video_info_new.csv [--videos 20000] [--folder FOLDER]

Makes a SIMULATED features.h5 (20,000 videos × 100 steps × 400 channels: 3.2 GB) in a temporary
folder that is deleted afterwards, or in FOLDER, where it stays and is used again. Prints two
tables: the start-up, `read_samples` with its hash of all features, and the part of a training step
of MTN (hidden 512, batch 16, one thread) that is spent waiting for the next batch. `cold`: the file
is dropped from the page cache before the round (what lies below the operating system may still
remember it). Every round is of other videos; the modes take turns, and a row is the round whose
share is the median.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from actionspan.features.store import open_features
from actionspan.jobs.determinism import deterministic
from actionspan.jobs.prefetch import prefetched
from actionspan.parallel.replica import make_replica
from actionspan.parallel.settings import ParallelSettings
from actionspan.temporal.samples import Samples, batches, read_samples
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import start, training_step
from actionspan.training.stopwatch import Stopwatch
from simulated_features import Simulated, simulate

CACHES = ("warm", "cold") if hasattr(os, "posix_fadvise") else ("warm",)
READINGS = ("plain", "prefetched")


def drop(path: Path) -> None:
    """Drop a file from the page cache; nothing may have it mapped."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def time_start(folder: Path, settings: TemporalSettings) -> Samples:
    """Print how long `read_samples` takes."""
    print("cache\tread_samples_seconds\tgb_hashed")
    for cache in reversed(CACHES):
        if cache == "cold":
            drop(folder / "features.h5")
        begun = time.perf_counter()
        samples = read_samples(folder / "features.h5", folder / "annotations.json", settings)
        seconds = time.perf_counter() - begun
        read = (len(samples.training) + len(samples.validation)) * samples.features[0].nbytes
        print(f"{cache}\t{seconds:.1f}\t{read / 1e9:.2f}", flush=True)
        videos = samples.features.shape
        samples = replace(samples, features=np.empty(0))  # lets go of the map
    print(f"\nfeatures: {videos}, float32, simulated\n", flush=True)
    return samples


def time_round(
    parts: tuple[nn.Module, torch.optim.Optimizer],
    samples: Samples,
    rows: np.ndarray,
    batch_size: int,
    reading: str,
) -> tuple[float, float]:
    """Train on `rows`; return the seconds waited for batches and all seconds."""
    model, optimiser = parts
    replica = make_replica("none", model, optimiser, ParallelSettings(), None)
    data = batches(samples, rows, batch_size)
    ready = prefetched(data) if reading == "prefetched" else data
    stopwatch = Stopwatch()
    for features, labels, share in stopwatch.loop(ready, "data", "step", replica):
        training_step(model, replica, features, labels, share)
    report = stopwatch.report()
    return report["data_seconds"], report["seconds"]


def time_steps(folder: Path, samples: Samples, settings: TemporalSettings, rounds: int) -> None:
    """Print the share of a step that is spent waiting."""
    path = folder / "features.h5"
    each = min(settings.batch_size * 40, len(samples.training))
    random = np.random.default_rng(1)
    seconds: dict[tuple[str, str], list[tuple[float, float]]] = {
        (cache, reading): [] for cache in CACHES for reading in READINGS
    }
    with deterministic(threads=1):
        parts = start("mtn", open_features(path).array.shape[2], settings)
        parts[0].train()
        for number in range(rounds + 1):  # the first is not counted
            for (cache, reading), taken in seconds.items():
                rows = random.choice(samples.training, size=each, replace=False)
                if cache == "cold":
                    drop(path)
                opened = replace(samples, features=open_features(path).array)
                if cache == "warm":
                    for _ in batches(opened, rows, settings.batch_size):
                        pass
                one = time_round(parts, opened, rows, settings.batch_size, reading)
                del opened
                if number:
                    taken.append(one)
    steps = -(-each // settings.batch_size)
    print("cache\treading\tsteps\trounds\tms_waiting\tms_per_step\tpercent_waiting\trange")
    for (cache, reading), taken in seconds.items():
        taken.sort(key=lambda pair: pair[0] / pair[1])
        waited, total = taken[len(taken) // 2]
        shares = [f"{pair[0] / pair[1]:.2%}" for pair in (taken[0], taken[-1])]
        print(
            f"{cache}\t{reading}\t{steps}\t{rounds}\t{waited / steps * 1e3:.2f}\t"
            f"{total / steps * 1e3:.1f}\t{waited / total:.2%}\t{'…'.join(shares)}",
            flush=True,
        )


def main() -> None:
    """Make the file unless it is there and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--annotations", type=Path, required=True)
    parser.add_argument("--video-info", type=Path)
    parser.add_argument("--videos", type=int, default=20000)
    parser.add_argument("--channels", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the simulated files here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings = TemporalSettings(hidden=512, batch_size=16)
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.folder or Path(name)
        if not (folder / "annotations.json").exists():
            how = Simulated(videos=arguments.videos, channels=arguments.channels)
            outputs = folder / "features.h5", folder / "annotations.json"
            simulate([arguments.annotations], arguments.video_info, *outputs, how)
        samples = time_start(folder, settings)
        time_steps(folder, samples, settings, arguments.rounds)


if __name__ == "__main__":
    main()
