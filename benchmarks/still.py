r"""What still footage costs, and how far its features are from those that would be computed.

    python benchmarks/still.py rooms/videos/*.mp4
    python benchmarks/still.py --hour rooms/videos/20200629_140714.mp4

Each video is encoded in one pass on one thread, as `propose` does it, with `video.frames.still` and
without, in turns. A row has how much of it is still, the seconds of the clock and of the CPU both
ways, the speed with it as a multiple of real time, and, for each stream, the root mean square
difference of features that stand for others, in percent of their size: the median, the largest,
and for comparison the median difference of neighbouring snippets.

With `--hour` the video is its longest still stretch, forwards and backwards, for an hour: the
pictures have the real noise of their sensor.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import median

import av
import numpy as np
import torch

from actionspan.features.one_pass import EncodedVideo, VideoEncoder
from actionspan.features.settings import VideoSettings
from actionspan.video.decode import read_frames
from actionspan.video.optical_flow import prepare_flow
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import snippets
from actionspan.video.stillness import STILL

STREAMS = ("rgb", "flow", "mover")


def main() -> None:
    """Encode the videos both ways and print a row each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("videos", type=Path, nargs="+")
    parser.add_argument("--hour", action="store_true")
    parser.add_argument("--seconds", type=int, default=3600, help="of the hour")
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings = VideoSettings()
    prepare_flow(settings.flow)
    plain = replace(settings, frames=replace(settings.frames, still=False))
    encoders = {"whole": VideoEncoder(plain), "still": VideoEncoder(settings)}
    print("video\tstill\tCPU_s_whole\tCPU_s\ts_whole\ts\tratio\tx_real_time", *STREAMS, sep="\t")
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.videos:
            video = path
            if arguments.hour:
                video = stretched(path, Path(folder) / path.name, arguments.seconds)
            print(path.name, *measured(video, encoders, arguments.repeats), sep="\t", flush=True)


def measured(path: Path, encoders: dict[str, VideoEncoder], repeats: int) -> list[str]:
    """Return the cells of a row."""
    taken: dict[str, list[tuple[float, float]]] = {key: [] for key in encoders}
    made: dict[str, EncodedVideo] = {}
    for _ in range(repeats):
        for key, encode in encoders.items():
            begun = time.process_time(), time.perf_counter()
            made[key] = encode(path)
            taken[key].append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
    still = made["still"].facts[STILL]
    cpu, wall = ([median(each[n] for each in taken[key]) for key in encoders] for n in (0, 1))
    length = float(made["still"].facts["time"][-1])
    cells = [f"{still.mean():.1%}", *(f"{value:.1f}" for value in (*cpu, *wall))]
    cells += [f"{cpu[0] / cpu[1]:.2f}", f"{length / wall[1]:.1f}"]
    for stream in STREAMS:
        own, stands = made["whole"].streams[stream], made["still"].streams[stream]
        size = median(rms(own)) / 100
        away = rms((own - stands)[still]) / size if still.any() else np.zeros(1)
        beside = median(rms(own[1:] - own[:-1])) / size
        cells.append(f"{np.median(away):.1f}, {away.max():.1f}, {beside:.1f}")
    return cells


def rms(vectors: np.ndarray) -> np.ndarray:
    """Return the root of the mean square of each row."""
    return np.sqrt((vectors**2).mean(axis=1))


def stretched(path: Path, out: Path, seconds: int) -> Path:
    """Write a video of the longest still stretch of another, forwards and backwards."""
    settings = FrameSettings()
    best, first, length = (0, 0), 0, settings.snippet_frames
    for number, snippet in enumerate(snippets(path, settings)):
        first = first if snippet.still else number
        best = max(best, (number - first, first))
    rows = range(best[1] * length, (best[0] + best[1]) * length)
    frames = [frame.picture() for n, frame in enumerate(read_frames(path)) if n in rows]
    order = frames + frames[-2:0:-1]
    height, width, _ = order[0].shape
    with av.open(str(out), "w") as file:
        stream = file.add_stream("libx264", rate=Fraction(25))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.options = {"crf": "20", "preset": "veryfast"}
        for number in range(25 * seconds):
            picture = order[number % len(order)]
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode())
    return out


if __name__ == "__main__":
    main()
