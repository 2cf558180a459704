"""Short videos of many containers and codecs; a script, since encoders start threads.

python benchmarks/campaigns/sample_videos.py FOLDER
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np

WIDTH, HEIGHT, FRAMES, RATE = 272, 256, 24, 25


class Kind(NamedTuple):
    """A container and the encoder of its video."""

    file: str
    codec: str
    pixels: str = "yuv420p"
    options: dict[str, str] | None = None  # the muxer's
    muxer: str | None = None


KINDS = (
    Kind("h264.mp4", "libx264"),
    Kind("fragmented.mp4", "libx264", options={"movflags": "frag_keyframe+empty_moov"}),
    Kind("fast.mp4", "libx264", options={"movflags": "faststart"}),
    Kind("h264.mov", "libx264"),
    Kind("h264.mkv", "libx264"),
    Kind("h264.ts", "libx264"),
    Kind("h264.flv", "libx264"),
    Kind("hevc.mkv", "libx265"),
    Kind("av1.mp4", "libsvtav1"),
    Kind("vp8.webm", "libvpx"),
    Kind("vp9.webm", "libvpx-vp9"),
    Kind("mpeg4.avi", "mpeg4"),
    Kind("mpeg4.3gp", "mpeg4"),
    Kind("mjpeg.avi", "mjpeg", "yuvj420p"),
    Kind("raw.avi", "rawvideo"),
    Kind("huffyuv.avi", "huffyuv", "yuv422p"),
    Kind("ut.avi", "utvideo", "yuv420p"),
    Kind("mpeg1.mpg", "mpeg1video"),
    Kind("mpeg2.vob", "mpeg2video"),
    Kind("mpeg2.ts", "mpeg2video"),
    Kind("mpeg2.mxf", "mpeg2video"),
    Kind("ffv1.mkv", "ffv1"),
    Kind("prores.mov", "prores_ks", "yuv422p10le"),
    Kind("png.mov", "png", "rgb24"),
    Kind("flash.flv", "flv"),
    Kind("wmv2.wmv", "wmv2"),
    Kind("animation.gif", "gif", "rgb8"),
)


def encode(folder: Path) -> None:
    """Encode the videos that the encoders here can make."""
    random = np.random.default_rng(1)
    blocks = random.integers(0, 255, (HEIGHT // 16, WIDTH // 16, 3), np.uint8)
    scene = np.kron(blocks, np.ones((16, 16, 1), np.uint8))
    for kind in KINDS:
        # no random ids, and one thread: a seed always damages the same bytes
        options = {"fflags": "+bitexact", **(kind.options or {})}
        try:
            with av.open(str(folder / kind.file), "w", kind.muxer, options=options) as file:
                stream: Any = file.add_stream(kind.codec, rate=RATE)
                stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, kind.pixels
                stream.codec_context.gop_size = 8
                stream.codec_context.thread_count = 1
                for number in range(FRAMES):
                    picture = np.ascontiguousarray(np.roll(scene, 5 * number, axis=1))
                    frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                    file.mux(stream.encode(frame))
                file.mux(stream.encode(None))
        except (av.FFmpegError, ValueError) as error:  # an encoder that this build lacks
            (folder / kind.file).unlink(missing_ok=True)
            print(f"videos: no {kind.file}: {error}")


if __name__ == "__main__":
    encode(Path(sys.argv[1]))
