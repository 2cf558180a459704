"""Videos with a tone of known levels."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

TONE = 1000  # Hz


def write_tone(
    path: Path,
    amplitudes: Sequence[float],
    *,
    codec: str = "aac",
    rate: int = 48_000,
    layout: str = "mono",
    seconds: float = 4.0,
    late: float = 0.0,
    fps: int = 25,
) -> Path:
    """Write a video whose sine has these amplitudes in equal parts; it begins `late` seconds late.

    Each picture is grey, and as bright as the sound is loud.
    """
    count = round(rate * seconds)
    part = np.arange(count) * len(amplitudes) // count
    tone = np.array(amplitudes)[part] * np.sin(2 * np.pi * TONE * np.arange(count) / rate)
    channels = 2 if layout == "stereo" else 1
    with av.open(str(path), "w") as file:
        video: Any = file.add_stream("libx264", rate=fps, options={"bf": "0"})
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        audio: Any = file.add_stream(codec, rate=rate, layout=layout)
        for number in range(round(fps * seconds)):
            level = amplitudes[number * len(amplitudes) // round(fps * seconds)]
            picture = np.full((48, 64, 3), round(200 * level), np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            file.mux(video.encode(frame))
        file.mux(video.encode(None))
        for start in range(0, count, 1000):
            piece = np.tile(tone[start : start + 1000], (channels, 1)).astype(np.float32)
            sound = av.AudioFrame.from_ndarray(piece, format="fltp", layout=layout)
            sound.sample_rate, sound.time_base = rate, Fraction(1, rate)
            sound.pts = start + round(late * rate)
            file.mux(audio.encode(sound))
        file.mux(audio.encode(None))
    return path


def add_tone(path: Path, amplitudes: Sequence[float]) -> None:
    """Give a video file that is silent a tone of these amplitudes in equal parts."""
    with av.open(str(path)) as file:
        seconds = (file.duration or 0) / av.time_base
    sound, mixed = path.with_suffix(".tone.mkv"), path.with_suffix(f".mixed{path.suffix}")
    write_tone(sound, amplitudes, seconds=seconds)
    with av.open(str(path)) as one, av.open(str(sound)) as two, av.open(str(mixed), "w") as file:
        streams = [one.streams.video[0], two.streams.audio[0]]
        copies = [file.add_stream_from_template(stream) for stream in streams]
        for source, stream, copy in zip((one, two), streams, copies, strict=True):
            for packet in source.demux(stream):
                if packet.dts is not None:
                    packet.stream = copy
                    file.mux(packet)
    sound.unlink()
    mixed.replace(path)
