"""A table of video files as people have them, with the time of each frame."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from video.numbered import encode

_MILLISECONDS = Fraction(1, 1000)


def _steady(rate: float, frames: int) -> list[float]:
    return [number / rate for number in range(frames)]


def _steps(*parts: tuple[int, float]) -> list[float]:
    """Return times of frames: for each part how many, and seconds from one to the next."""
    steps = np.repeat([step for _, step in parts], [count for count, _ in parts])
    return [0.0, *np.cumsum(steps)[:-1].tolist()]


USUAL = _steady(30, 240)
RATES = {
    "30": USUAL,
    "half a minute": _steady(30, 900),
    "29.97": _steady(30000 / 1001, 240),
    "240": _steady(240, 600),
    "1": _steady(1, 24),
    "falling": _steps((90, 1 / 30), (60, 1 / 6)),
    "gap": _steps((60, 0.04), (1, 6.0), (90, 0.04)),
    "jitter": np.cumsum(np.random.default_rng(7).integers(20, 60, 200) / 1000).tolist(),
}


@dataclass(frozen=True, kw_only=True)
class Footage:
    """How a file is made; `start` is the time stamp of its first frame in seconds."""

    codec: str = "libx264"
    rate: str = "30"
    start: float = 0.0
    key_every: int = 30
    options: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # of `encode`

    @property
    def seconds(self) -> list[float]:
        """When each frame is shown, counted from the first."""
        times = RATES[self.rate]
        return [time - times[0] for time in times]

    def write(self, path: Path) -> Path:
        """Encode it: each picture shows its number."""
        tick = Fraction(1, 90_000)
        if path.suffix in (".avi", ".mpg"):  # nothing but a rate
            tick = Fraction(1, 30)
        elif path.suffix in (".mkv", ".webm", ".flv", ".wmv"):
            tick = _MILLISECONDS
        elif self.codec == "mpeg2video":  # its rates are a list
            tick = Fraction(1, 30)
        elif self.codec == "mpeg4":  # its ticks have 16 bits
            tick = Fraction(1, 30_000)
        stamps = [round((self.start + seconds) / tick) for seconds in self.seconds]
        return encode(
            path,
            len(stamps),
            codec=self.codec,
            rate=30,
            stamps=stamps,
            tick=tick,
            key_every=self.key_every,
            options=self.options,
            **self.more,
        )


def _x264(**more: Any) -> dict[str, Any]:
    return {"options": {"sc_threshold": "0", "preset": "veryfast", "bf": "3"}, **more}


def _x265(more: str = "") -> dict[str, str]:
    return {"preset": "ultrafast", "x265-params": f"log-level=none:bframes=4{more}"}


_VP9: dict[str, Any] = {"codec": "libvpx-vp9", "options": {"cpu-used": "8", "deadline": "realtime"}}
_MPEG4: dict[str, Any] = {"codec": "mpeg4", "more": {"b_frames": 2}}
_MPEG2: dict[str, Any] = {"codec": "mpeg2video", "more": {"b_frames": 2}}
HOURS = 7200.5

FILES: dict[str, Footage] = {
    "h264.mp4": Footage(**_x264()),
    "h264_late.mp4": Footage(**_x264(start=2.5, key_every=240)),
    "h264_falling.mp4": Footage(**_x264(rate="falling")),
    "h264_open.mp4": Footage(options={"x264-params": "open-gop=1:keyint=24:bframes=3:scenecut=0"}),
    "h264_refresh.mp4": Footage(options={"x264-params": "intra-refresh=1:keyint=24:bframes=0"}),
    "h264_240.mp4": Footage(**_x264(rate="240", key_every=600)),
    "h265_jitter.mp4": Footage(codec="libx265", options=_x265(), rate="jitter"),
    "mpeg4.mp4": Footage(**_MPEG4),
    "av1.mp4": Footage(codec="libsvtav1", options={"preset": "6", "crf": "5"}),
    "h264.mov": Footage(**_x264(start=1.0, rate="29.97")),
    "mjpeg_gap.mov": Footage(codec="mjpeg", rate="gap", more={"pixels": "yuvj420p"}),
    "h264.mkv": Footage(**_x264(start=HOURS, key_every=100)),
    "h264_falling.mkv": Footage(**_x264(start=HOURS, rate="falling")),
    "h265_open.mkv": Footage(codec="libx265", options=_x265(":open-gop=1:keyint=24")),
    "h264_1.mkv": Footage(**_x264(rate="1", key_every=12)),
    "h264.ts": Footage(**_x264(start=HOURS, key_every=100)),
    "h264_sparse.ts": Footage(**_x264(start=1.4, key_every=240)),
    "h264_gap.ts": Footage(**_x264(start=HOURS, rate="gap", key_every=25)),
    "h264_falling.ts": Footage(**_x264(rate="falling", key_every=60)),
    "h265.ts": Footage(codec="libx265", options=_x265(), start=HOURS, key_every=48),
    "mpeg2.ts": Footage(**_MPEG2, start=HOURS, key_every=15),
    "mpeg2.mpg": Footage(**_MPEG2, key_every=15),
    "h264.flv": Footage(**_x264(start=12.0)),
    "flv1_falling.flv": Footage(codec="flv", rate="falling"),
    "h264.avi": Footage(**_x264()),
    "mpeg4.avi": Footage(**_MPEG4),
    "mjpeg.avi": Footage(codec="mjpeg", more={"pixels": "yuvj420p"}),
    "msmpeg4.avi": Footage(codec="msmpeg4", key_every=100),
    "vp9.webm": Footage(**_VP9, start=HOURS, key_every=100),
    "vp9_jitter.webm": Footage(**_VP9, rate="jitter"),
    "vp8.webm": Footage(codec="libvpx", options={"deadline": "realtime", "cpu-used": "8"}),
    "vp8_hidden.webm": Footage(
        codec="libvpx", options={"auto-alt-ref": "1", "lag-in-frames": "16", "cpu-used": "4"}
    ),
    "wmv2.wmv": Footage(codec="wmv2", start=3.0, key_every=60),
    "wmv2_falling.wmv": Footage(codec="wmv2", rate="falling"),
    "msmpeg4.asf": Footage(codec="msmpeg4", key_every=240),
}  # fmt: skip


def events_of(seconds: Sequence[float]) -> list[tuple[float, float, int, int]]:
    """Return start and end of events, and the first and the last frame that they show.

    One begins with a frame and ends as another begins, one lies between the two, as times in
    milliseconds, one is inside a single frame.
    """
    last = len(seconds) - 1
    first, middle, late = last // 5, last // 2 + 1, 4 * last // 5

    def inside(frame: int) -> float:
        return seconds[frame] + 0.45 * (seconds[frame + 1] - seconds[frame])

    return [
        (seconds[first], seconds[middle], first, middle - 1),
        (round(seconds[middle], 3), round(seconds[late], 3), middle, late - 1),
        (inside(middle), inside(late), middle, late),
        (inside(late) - 1e-4, inside(late), late, late),
    ]
