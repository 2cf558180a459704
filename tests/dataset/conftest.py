"""Videos that the tests encode themselves."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from own_process import in_own_process, needs_own_process
from video.numbered import write_film


def encode_video(
    path: Path,
    *,
    times: Sequence[int] = tuple(range(20)),
    tick: Fraction = Fraction(1, 10),
    size: tuple[int, int] = (64, 48),
    **how: Any,
) -> Path:
    """Encode noise with the given time stamps (in ticks) and picture size (width, height)."""
    if needs_own_process(how.get("codec", "")):
        in_own_process(encode_video, path, times=times, tick=tick, size=size, **how)
        return path
    random = np.random.default_rng(1)
    pictures = (random.integers(0, 255, (*size[::-1], 3), dtype=np.uint8) for _ in times)
    return write_film(path, pictures, rate=1 / tick, stamps=times, tick=tick, **how)


@pytest.fixture(scope="session")
def video_file(tmp_path_factory) -> Path:
    """A 2-second H.264 file of 20 frames whose index comes first, so that a cut-off copy opens."""
    path = tmp_path_factory.mktemp("video") / "whole.mp4"
    return encode_video(path, container_options={"movflags": "faststart"})
