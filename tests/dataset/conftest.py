"""Videos that the tests encode themselves."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from own_process import in_own_process, needs_own_process


def encode_video(
    path: Path,
    *,
    times: Sequence[int] = tuple(range(20)),
    tick: Fraction = Fraction(1, 10),
    size: tuple[int, int] = (64, 48),
    codec: str = "libx264",
    rotation: int = 0,
    pix_fmt: str = "yuv420p",
    options: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
) -> Path:
    """Encode noise with the given time stamps (in ticks) and picture size (width, height)."""
    if needs_own_process(codec):
        in_own_process(encode_video, path, times=times, tick=tick, codec=codec, options=options)
        return path
    random = np.random.default_rng(1)
    with av.open(str(path), "w", options=container_options or {}) as container:
        stream: Any = container.add_stream(codec, rate=1 / tick, options=options or {})
        stream.width, stream.height = size
        stream.pix_fmt = pix_fmt
        stream.codec_context.time_base = tick
        if rotation:
            stream.set_display_rotation(rotation)
        for time in times:
            picture = random.integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = time, tick
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.fixture(scope="session")
def encode():
    return encode_video


@pytest.fixture(scope="session")
def video_file(tmp_path_factory) -> Path:
    """A 2-second H.264 file of 20 frames whose index comes first, so that a cut-off copy opens."""
    path = tmp_path_factory.mktemp("video") / "whole.mp4"
    return encode_video(path, container_options={"movflags": "faststart"})
