"""Loudness of a video's sound and its changes, 25 values a second on the time axis of its frames.

Level k is of the samples from 40 k to 40 (k + 1) milliseconds after the first frame: the root
of the mean of their squares over all channels, in dB below full scale. A sine of amplitude a has
the level 20 log10(a / √2). Silence is `FLOOR`, the step of 16 bits; where the track has no sample
the level is NaN. The change at an edge between two levels is the mean level after it minus
the mean level before it. Nothing is read into either: silence is a level like others.
"""

import math
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.audio.frame import AudioFrame
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64
from actionspan.dataset.containers import open_container
from actionspan.dataset.timeline import read_timeline
from actionspan.errors import InputError
from actionspan.jobs.apart import still_working

RATE = 25  # levels a second
FLOOR = -90.3  # dB: 20 log10(1 / 2¹⁵)
COLUMNS = ("loudness", "change")
SOUND = "sound"  # the stream of features
_SIDE = 12  # levels on each side of a change: half a second
_LATE = 0.1  # seconds: stamps that are off by less are rounded, and samples follow each other


def sound_curves(path: Path, seconds: float) -> Float32:
    """Return loudness and change (N, 2) in dB of the N = 25 `seconds` levels of a video file.

    Without a track of sound, or one that can be decoded, all are NaN; a damaged one has levels
    where it can be decoded.
    """
    count = math.ceil(seconds * RATE)
    sums, samples = np.zeros(count), np.zeros(count, np.int64)
    for frame, at in sound_frames(path):
        still_working()
        if not -seconds - 1 < at < seconds:  # stamps may be anything
            continue
        first, own_sums, own_samples = squares(frame, at)
        inside = slice(max(first, 0), max(min(first + len(own_sums), count), 0))
        own = slice(inside.start - first, inside.stop - first)
        if inside.start < inside.stop:
            sums[inside] += own_sums[own]
            samples[inside] += own_samples[own]
    loudness = levels(sums, samples)
    return np.stack([loudness, change(loudness)], axis=1).astype(np.float32)


def sound_frames(path: Path) -> Iterator[tuple[AudioFrame, float]]:
    """Yield the frames of the best track, each with its time in seconds from the first frame.

    They end where something is wrong: the video is not lost with its sound.
    """
    with (
        suppress(InputError, OSError, av.FFmpegError, ValueError, ArithmeticError),
        open_container(path) as container,
    ):
        origin = read_timeline(path).origin
        origin = 0.0 if math.isnan(origin) else origin
        stream: Any = container.streams.best("audio")
        if stream is None or stream.codec_context is None:
            return
        follows = 0.0
        for packet in container.demux(stream):
            frames: list[AudioFrame] = []
            with suppress(av.InvalidDataError):  # the next may be whole
                frames = packet.decode()
            for frame in frames:
                stamp = follows if frame.time is None else frame.time - origin
                at = follows if abs(stamp - follows) < _LATE and follows else stamp
                yield frame, at
                follows = at + frame.samples / frame.sample_rate


def squares(frame: AudioFrame, seconds: float) -> tuple[int, Float64, Int64]:
    """Return the first level of a frame that begins at a time, sums of squares, and samples.

    Sums are over time and the mean over channels, both of each level that the frame has a part of.
    """
    rate, count = frame.sample_rate, frame.samples
    place = (round(seconds * rate) + np.arange(count)) * RATE // rate
    first = int(place[0])
    values = _samples(frame)[:count]
    power = np.square(values).mean(axis=1)
    power = np.where(np.isfinite(power), power, 0.0)
    sums = np.bincount(place - first, power).astype(np.float64)
    return first, sums, np.bincount(place - first).astype(np.int64)


def _samples(frame: AudioFrame) -> Float64:
    """Return the samples of a frame (T, channels), -1 … 1."""
    raw: Any = frame.to_ndarray()  # (channels, T), or (1, T · channels) where they alternate
    values: Float64 = raw.astype(np.float64)
    if raw.dtype == np.uint8:
        values = (values - 128) / 128
    elif raw.dtype.kind == "i":
        values /= -float(np.iinfo(raw.dtype).min)
    channels = frame.layout.nb_channels
    return values.T if frame.format.is_planar else values.reshape(-1, channels)


class LiveSound:
    """The level of a stream's sound since it was last asked for."""

    def __init__(self) -> None:
        self.shift: float | None = None  # from own time stamps to seconds of the stream
        self.since = 0.0  # seconds, when it was asked
        self._parts: deque[tuple[int, float, int]] = deque()  # level, squares, samples

    def take(self, packet: Any) -> None:
        """Decode a packet of sound, as far as it can be."""
        with suppress(av.FFmpegError, ValueError):
            for frame in packet.decode():
                if self.shift is not None and frame.time is not None:
                    self.add(frame, frame.time + self.shift)

    def add(self, frame: AudioFrame, seconds: float) -> None:
        """Count a frame that begins at a time."""
        first, sums, samples = squares(frame, seconds)
        self._parts.extend(zip(range(first, first + len(sums)), sums, samples, strict=True))

    def level(self, seconds: float) -> float | None:
        """Return the level up to a time; None: no sound has come."""
        total, count = 0.0, 0
        while self._parts and self._parts[0][0] < seconds * RATE:
            place, squared, samples = self._parts.popleft()
            if place >= self.since * RATE:
                total, count = total + squared, count + samples
        self.since = seconds
        return float(levels(np.array(total), np.array(count))) if count else None


def levels(sums: Float64, samples: Int64) -> Float64:
    """Return the level in dB of each sum of squares over its samples; NaN without any."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Float64 = np.maximum(10 * np.log10(sums / samples), FLOOR)
    return found


def change(loudness: Float64) -> Float64:
    """Return how much louder (dB) the half second from each level on is than the one before it.

    It is NaN where either has no level.
    """
    edges = np.arange(len(loudness))
    after = _means(loudness, edges, edges + _SIDE)
    before = _means(loudness, edges - _SIDE, edges)
    return after - before


def _means(values: NDArray[Any], first: NDArray[Any], last: NDArray[Any]) -> Float64:
    """Return the mean of the known values (N, …) of each span of rows; NaN without any."""
    known = np.isfinite(values)
    zero = np.zeros((1, *values.shape[1:]))
    exact = np.where(known, values, 0.0).astype(np.float64)  # a day has two million levels
    sums = np.concatenate([zero, np.cumsum(exact, axis=0)])
    counts = np.concatenate([zero, np.cumsum(known, axis=0)])
    first, last = first.clip(0, len(values)), last.clip(0, len(values))
    with np.errstate(invalid="ignore"):
        mean: Float64 = (sums[last] - sums[first]) / (counts[last] - counts[first])
    return mean


def _first_behind(curves: Float32, times: NDArray[Any]) -> NDArray[Any]:
    """Return the first row of curves with its centre at each time or behind it."""
    rows = np.ceil(times * RATE - 0.5 - 1e-6)  # a centre may lie on an edge, but for rounding
    return rows.clip(0, len(curves)).astype(np.int64)


def in_parts(curves: Float32, seconds: float, parts: int) -> Float32:
    """Return the mean (parts, 2) of curves (N, 2) over equal parts of a video; NaN without any."""
    edges = _first_behind(curves, np.arange(parts + 1) * seconds / parts)
    return _means(curves, edges[:-1], edges[1:]).astype(np.float32)


def sound_rows(path: Path, seconds: float, times: Float64) -> Float32:
    """Return the features (T, 2) of the sound of a video at its snippets; see `at_snippets`.

    Raises:
        InputError: The file is missing, so its sound is not known.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file, and its sound is wanted; set sound to false")
    return at_snippets(sound_curves(path, seconds), times)


def at_snippets(curves: Float32, times: Float64) -> Float32:
    """Return the mean (T, 2) of curves (N, 2) around T rising times, as far as to the next.

    Where the level is NaN, loudness is the mean of the others and change is 0; a video without
    sound is as one of silence.
    """
    reach = float(np.median(np.diff(times))) / 2 if len(times) > 1 else 0.5
    first = np.minimum(_first_behind(curves, times - reach), max(len(curves) - 1, 0))
    last = np.maximum(_first_behind(curves, times + reach), first + 1)
    rows = _means(curves, first, last)
    loud = rows[np.isfinite(rows[:, 0]), 0]
    usual = [loud.mean() if len(loud) else FLOOR, 0.0]
    return np.where(np.isfinite(rows), rows, usual).astype(np.float32)
