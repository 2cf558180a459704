"""What a minute of moving footage costs, by two versions in turn, and the least that it can cost.

    python benchmarks/moving.py rooms/videos/20200628_144536.mp4 --old OLD/src --repeats 5

A process a time encodes the video on one thread, as `propose` does, with the networks loaded
before: by the default settings, by those in bfloat16, and by those of the included model, which
sees motion alone. `OLD/src` holds the sources of another version, with its own defaults. A row has
the CPU seconds a minute of both, medians with the range, how many times as fast the new one is (the
median of neighbours), the new one's speed as a multiple of real time, and the limit: decoding
alone and the operations of the networks at the peak of a product of matrices, measured between.
With `--tall 720` the video is enlarged to so many lines first; with `--still 120` it is the longest
still part, for 120 s.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import av
import cv2

from still import stretched

WAYS: dict[str, dict[str, Any]] = {
    "features": {},
    "features in bfloat16": {"precision": "bfloat16"},
    "included model": {"source": "motion", "mover": False},
}
PRODUCT = 2048  # side of the matrices


def seconds_of(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this process."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def encode(video: Path, changed: dict[str, Any]) -> dict[str, float]:
    """Encode the video by the sources of this process; return what was measured."""
    import torch

    try:
        from actionspan.jobs.memory import keep_freed_memory
    except ImportError:  # before 2026-11-28
        from actionspan.running.memory import keep_freed_memory  # type: ignore[import-not-found]
    from actionspan.features.one_pass import VideoEncoder
    from actionspan.features.settings import EncoderSettings, VideoSettings
    from actionspan.video.optical_flow import prepare_flow

    keep_freed_memory()
    torch.set_num_threads(1)
    settings = VideoSettings(encoders=EncoderSettings(**changed))
    if settings.encoders.source == "motion":
        settings = included_settings()
    prepare_flow(settings.flow)
    encoder = VideoEncoder(settings)
    made: list[Any] = []
    seconds = seconds_of(lambda: made.append(encoder(video)))
    facts = made[0].facts
    own = float((~facts["still"]).sum())
    return {"seconds": seconds, "own": own, "snippets": len(facts["time"])}


def included_settings() -> Any:
    """Return what the model that comes with the sources of this process sees."""
    from actionspan.features.settings import VideoSettings

    try:
        from actionspan.proposals.bundle_files import included_model
    except ImportError:  # before 2026-11-27
        from actionspan.proposals.bundle import included_model
    from actionspan.proposals.model_bundle import load_bundle

    model = load_bundle(included_model())
    return VideoSettings(frames=model.frames, flow=model.flow, encoders=model.encoders)


def limits(video: Path, changed: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of decoding alone, and of each snippet by the networks at the peak."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from actionspan.features.encoders import build_network
    from actionspan.features.settings import EncoderSettings

    def decode() -> None:
        with av.open(str(video)) as container:
            stream = container.streams.video[0]
            stream.thread_type, stream.codec_context.thread_count = "NONE", 1
            for _ in container.decode(stream):
                pass

    torch.set_num_threads(1)
    settings, operations = EncoderSettings(**changed), 0
    if settings.source != "motion":
        streams = (3, 2, 3) if settings.mover else (3, 2)
        for planes in streams:
            network, _ = build_network(settings.rgb_encoder, None, planes, settings.source)
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                network(torch.zeros(1, planes, settings.input_size, settings.input_size))
            operations += counter.get_total_flops()
    matrix = torch.randn(PRODUCT, PRODUCT, dtype=getattr(torch, settings.precision))
    product = min(seconds_of(lambda: matrix @ matrix) for _ in range(7))
    each = operations * product / (2 * PRODUCT**3)
    return {"decoding": seconds_of(decode), "each": each, "gflops": 2e-9 * PRODUCT**3 / product}


def apart(what: str, video: Path, changed: dict[str, Any], source: Path | None) -> dict[str, float]:
    """Measure in a process of its own, by other sources if they are given."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if source:
        environment["PYTHONPATH"] = str(source.resolve())
    words = [sys.executable, __file__, str(video), "--measure", what, json.dumps(changed)]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def enlarged(video: Path, out: Path, lines: int) -> Path:
    """Write the video with so many lines, 16:9, as H.264."""
    size = 2 * round(lines * 8 / 9), lines
    with av.open(str(video)) as given, av.open(str(out), "w") as file:
        stream = file.add_stream("libx264", rate=given.streams.video[0].average_rate)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.options = {"crf": "23", "preset": "veryfast"}
        for frame in given.decode(video=0):
            picture = cv2.resize(
                frame.to_ndarray(format="rgb24"), size, interpolation=cv2.INTER_CUBIC
            )
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode())
    return out


def row(name: str, video: Path, arguments: argparse.Namespace) -> str:
    """Measure one way and return its line."""
    changed, taken = WAYS[name], defaultdict(list)
    sources = {"old": arguments.old, "new": None} if arguments.old else {"new": None}
    for _ in range(arguments.repeats):
        for version, source in sources.items():
            taken[version].append(apart("encode", video, changed, source))
        taken["limit"].append(apart("limits", video, changed, None))
    with av.open(str(video)) as container:
        assert container.duration is not None
        minutes = container.duration / 60e6
    by = {key: [each["seconds"] / minutes for each in taken[key]] for key in sources}
    cells = [f"{median(own):.2f} ({min(own):.2f}–{max(own):.2f})" for own in by.values()]
    if "old" in by:
        ratios = [old / new for old, new in zip(by["old"], by["new"], strict=True)]
        cells.append(f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    cells.append(f"{60 / median(by['new']):.0f}")
    decoding, each, peak = (
        median(one[key] for one in taken["limit"]) for key in ("decoding", "each", "gflops")
    )
    least = (decoding + each * taken["new"][0]["own"]) / minutes
    still = 1 - taken["new"][0]["own"] / taken["new"][0]["snippets"]
    cells += [f"{decoding / minutes:.2f}", f"{peak:.0f}", f"{least:.2f}", f"{100 * still:.0f} %"]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or what a process measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("video", type=Path)
    parser.add_argument("--old", type=Path, metavar="OLD/src", help="sources of another version")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tall", type=int, metavar="LINES", help="enlarge the video first")
    parser.add_argument("--still", type=int, metavar="SECONDS", help="of its longest still part")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        what, changed = arguments.measure
        measure = encode if what == "encode" else limits
        print(json.dumps(measure(arguments.video, json.loads(changed))))
        return
    compared = ("old", "new", "as fast") if arguments.old else ("new",)
    titles = ("way", *compared, "× real time", "decoding", "GFLOPS", "limit", "still")
    print(f"| {' | '.join(titles)} |\n|---|{'---:|' * (len(titles) - 1)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        video = arguments.video
        if arguments.tall:
            video = enlarged(video, Path(folder) / video.name, arguments.tall)
        if arguments.still:
            video = stretched(video, Path(folder) / f"still-{video.name}", arguments.still)
        for name in arguments.ways:
            print(row(name, video, arguments), flush=True)


if __name__ == "__main__":
    main()
