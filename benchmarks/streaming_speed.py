"""Speed, latency and memory of `actionspan stream`, on one core and on two.

    python benchmarks/streaming_speed.py VIDEO --model results/proposals/stream --launches 5
    python benchmarks/streaming_speed.py VIDEO --model results/proposals/stream --memory 100000

The first plays the file, looped, at full speed on one core (executor sequential) and on two (two
stages, by threads or processes) in turns, and then the file at its own rate. Times are of the
stream alone, without the start of Python. Ratios are of neighbours in turn; the load says what else
the machine did.
The second loops the file to so many frames and prints resident memory along the way; there the
networks see small pictures, as what may grow is everything else.
"""

import argparse
import dataclasses
import io
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import av
import cv2
import torch

from actionspan.jobs.memory import keep_freed_memory
from actionspan.live.encoding import encoding_chain
from actionspan.live.play import Player, play
from actionspan.live.settings import StreamSettings, parse_source
from actionspan.proposals.model_bundle import load_bundle

SMALL = 32  # pixels
WAYS = {"sequential": 1, "thread": 2, "process": 2}  # executors and cores


def main() -> None:
    """Measure what the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("video", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--executors", nargs="+", default=["sequential", "thread"], choices=WAYS)
    parser.add_argument("--frames", type=int, default=3000, help="the file is looped to so many")
    parser.add_argument("--memory", type=int, metavar="FRAMES", help="measure memory instead")
    given = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        if given.memory:
            memory(looped(given.video, Path(folder) / "long.mkv", given.memory), given.model)
        else:
            long = looped(given.video, Path(folder) / "long.mkv", given.frames)
            speed(given.video, long, given.model, given.executors, given.launches)


def stream(video: Path, player: Player, cores: int, **settings: Any) -> dict[str, Any]:
    """Stream a file on some cores; return its last event with wall and CPU seconds."""
    echo = io.StringIO()
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:cores])  # threads and processes to come inherit it
    player.proposer.load_state_dict(FRESH)
    try:
        with tempfile.TemporaryDirectory() as out:
            wall, cpu = time.perf_counter(), time.process_time()
            source = parse_source(str(video))
            play(source, player, StreamSettings(**settings), Path(out), echo=echo)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    finally:
        os.sched_setaffinity(0, allowed)
    end = json.loads(echo.getvalue().splitlines()[-1])
    return end | {"wall": wall, "cpu": cpu}


def speed(video: Path, long: Path, model: Path, executors: list[str], launches: int) -> None:
    """Print times real time and latencies of each executor."""
    player = Player.load(model, StreamSettings())
    FRESH.update(player.proposer.state_dict())
    runs: dict[str, list[dict[str, Any]]] = {executor: [] for executor in executors}
    for _ in range(launches):
        for executor in executors:
            runs[executor].append(stream(long, player, WAYS[executor], executor=executor))
    load = os.getloadavg()[0]
    length, snippets = (runs[executors[0]][0][key] for key in ("seconds", "snippets"))
    print(f"{video.name}: {length:.1f} s, {snippets} snippets; load {load:.1f}\n")
    print("executor    cores  times real time (range)   ms/snippet  CPU ms/snippet  ratio (range)")
    for executor, found in runs.items():
        times = [length / run["wall"] for run in found]
        pairs = zip(runs[executors[0]], found, strict=True)
        ratios = [first["wall"] / run["wall"] for first, run in pairs]
        wall, cpu = (1000 * median(run[key] for run in found) / snippets for key in ("wall", "cpu"))
        print(
            f"{executor:11} {WAYS[executor]:5}  {spread(times):24}  {wall:10.1f}  {cpu:14.1f}  "
            f"{spread(ratios)}"
        )
    print("\nat the file's own rate, milliseconds: p50 / p95 / max")
    for executor in executors:
        end = stream(video, player, WAYS[executor], executor=executor, rate="real")
        parts = {
            name: " / ".join(f"{parts[each]:.0f}" for each in ("p50", "p95", "max"))
            for name, parts in end["latency_ms"].items()
        }
        print(f"{executor:11} " + "; ".join(f"{name} {text}" for name, text in parts.items()))


def memory(video: Path, model: Path) -> None:
    """Print resident memory while a long file plays."""
    bundle, settings = load_bundle(model), StreamSettings(executor="sequential")
    encoders = dataclasses.replace(bundle.encoders, input_size=SMALL)
    chain = encoding_chain(encoders, bundle.flow, bundle.frames.stack)
    player = dataclasses.replace(Player.load(model, settings), chain=chain)
    watch = Watch(every=1000)
    with tempfile.TemporaryDirectory() as out:
        play(parse_source(str(video)), player, settings, Path(out), echo=watch)
    print("snippets  resident [MB]")
    for snippet, megabytes in watch.seen:
        print(f"{snippet:8}  {megabytes:8.1f}")
    after = [megabytes for _, megabytes in watch.seen[1:]]
    grown = after[-1] - after[0]
    print(f"growth after the first {2 * watch.every}: {grown:+.1f} MB; most {max(after):.1f} MB")


class Watch:
    """Takes events, and notes resident memory at every so many snippets."""

    def __init__(self, every: int) -> None:
        self.every, self.count = every, 0
        self.seen: list[tuple[int, float]] = []

    def write(self, text: str) -> None:
        """Take an event, or the end of its line."""
        if text.startswith('{"event": "actionness"'):
            self.count += 1
            if self.count % self.every == 0:
                self.seen.append((self.count, resident()))

    def flush(self) -> None:
        """There is nothing to flush."""


def resident() -> float:
    """Return this process's resident memory in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def looped(video: Path, target: Path, frames: int) -> Path:
    """Repeat a file's packets until there are so many frames; nothing is encoded."""
    with av.open(str(target), "w") as new:
        written, shift, copy = 0, 0, None
        while written < frames:
            with av.open(str(video)) as old:
                stream = old.streams.video[0]
                copy = copy or new.add_stream_from_template(stream)
                end = 0
                for packet in old.demux(stream):
                    if packet.dts is None:
                        continue
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    end = max(end, packet.pts + (packet.duration or 1))
                    packet.stream = copy
                    new.mux(packet)
                    written += 1
                shift = end
    return target


def median(values: Any) -> float:
    """Return the median."""
    return statistics.median(values)


def spread(values: list[float]) -> str:
    """Return the median and the range."""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


FRESH: dict[str, Any] = {}  # state of a proposer that has seen nothing

if __name__ == "__main__":
    main()
