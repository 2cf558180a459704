"""Zones: named areas of a fixed camera's frames, outside which nothing counts.

Frames are masked in one place, just after they are decoded: pixels outside all zones get the same
grey, in which nothing moves and little is seen. Cuts are found in whole frames, as a cut changes
all of a frame, and someone who fills a small zone would look like one.

A file of zones maps patterns of video names to the zones of a camera. Points are shares of the
width and the height, from the upper left corner:

    {"door*": [{"name": "step", "points": [[0.1, 0.5], [0.4, 0.5], [0.4, 0.9]]}]}
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike

from actionspan.arrays import Float32, Float64, Mask, UInt8
from actionspan.errors import InputError, brief, printable
from actionspan.storage.writing import digest, open_h5, read_json
from actionspan.video.decode import Frame, Luma

ZONE_MOTION = "zone_motion"
"""The name of how much moves in each of several zones, in files and among a video's facts."""

SHARE = "share_inside"
"""The attribute of a video's frames that holds the share of its pixels inside the zones."""

_GREY = 128  # of pixels outside, close to the mean that networks of images subtract
_LONGEST_NAME, _MOST_POINTS = 100, 1000
_REMEMBERED = 4096  # snippets of a stream, for the usual motion of a zone
_FORM = '{"*": [{"name": "door", "points": [[0.1, 0.2], [0.5, 0.2], [0.5, 0.9]]}]}'


class Zone(NamedTuple):
    """A named polygon."""

    name: str
    points: tuple[tuple[float, float], ...]  # x and y, 0 … 1


Zones = tuple[Zone, ...]
"""The zones of a camera; none: whole frames count."""
Cameras = Mapping[str, Zones]
"""The zones of cameras by patterns of their videos' names."""
WHOLE: Cameras = {}
"""No zones: whole frames count."""


def read_zones(path: Path | None) -> Cameras:
    """Read a file of zones; without one whole frames count.

    Raises:
        InputError: The file is missing or not such a file; the line names the key.
    """
    return WHOLE if path is None else check_zones(read_json(path), str(path))


def check_zones(content: Any, name: str) -> Cameras:
    """Return the zones that the content of a file means; `name` is for messages.

    Raises:
        InputError: It is not of that form.
    """
    if not isinstance(content, dict):
        raise InputError(f"{name}: not patterns of video names with zones; write {_FORM}")
    cameras = {}
    for pattern, zones in content.items():
        key = printable(pattern)
        if not pattern or not isinstance(zones, list):
            raise InputError(f"{name}: {key or 'a pattern'}: must be a list of zones: {_FORM}")
        cameras[pattern] = tuple(
            _zone(zone, f"{name}: {key}[{place}]") for place, zone in enumerate(zones)
        )
        names = [zone.name for zone in cameras[pattern]]
        for twice in {each for each in names if names.count(each) > 1}:
            raise InputError(f"{name}: {key}: two zones are called {brief(twice)}; rename one")
    return cameras


def _zone(content: Any, key: str) -> Zone:
    if not isinstance(content, dict) or content.keys() != {"name", "points"}:
        raise InputError(f"{key}: a zone has a name and points, and nothing else")
    name, points = content["name"], content["points"]
    if not isinstance(name, str) or not 0 < len(name.strip()) <= _LONGEST_NAME:
        raise InputError(
            f"{key}.name {brief(name)}: must be a text of 1 to {_LONGEST_NAME} characters"
        )
    if not isinstance(points, list) or not 3 <= len(points) <= _MOST_POINTS:
        raise InputError(f"{key}.points {brief(points)}: must be 3 to {_MOST_POINTS} points [x, y]")
    for place, point in enumerate(points):
        if not isinstance(point, list) or len(point) != 2 or not all(map(_is_share, point)):
            line = "must be [x, y], shares of width and height from 0 to 1"
            raise InputError(f"{key}.points[{place}] {brief(point)}: {line}")
    first, *others = ((float(x), float(y)) for x, y in points)
    sides = [(x - first[0], y - first[1]) for x, y in others]
    if not any(abs(x * v - y * u) > 1e-9 for x, y in sides for u, v in sides):
        raise InputError(f"{key}.points: lie on one line; a zone is an area")
    return Zone(name.strip(), (first, *others))


def _is_share(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= 1  # NaN is not


def as_json(cameras: Cameras) -> dict[str, list[dict[str, Any]]]:
    """Return zones as their file has them."""
    return {
        pattern: [{"name": zone.name, "points": list(map(list, zone.points))} for zone in zones]
        for pattern, zones in cameras.items()
    }


def zones_of(cameras: Cameras, video_id: str) -> Zones:
    """Return the zones of a video: the zones of the pattern that counts for its name."""
    return cameras.get(pattern_of(cameras, video_id), ())


def pattern_of(cameras: Cameras, video_id: str) -> str:
    """Return the pattern that counts of those a video's name matches; empty if there is none.

    It is the one with the most characters other than `*` and `?`.
    """
    matching = [pattern for pattern in cameras if fnmatchcase(video_id, pattern)]
    return max(matching, key=lambda each: (len(re.sub(r"[*?]", "", each)), each), default="")


def zones_attributes(zones: Zones) -> dict[str, str]:
    """Return what sets results of these zones apart from others; nothing for whole frames."""
    return {"zones": digest(zones)} if zones else {}


def digests_of(cameras: Cameras, video_id: str) -> list[str]:
    """Return the part of a video's digest for its zones; nothing for whole frames."""
    return list(zones_attributes(zones_of(cameras, video_id)).values())


@lru_cache(maxsize=8)
def _masks(zones: Zones, height: int, width: int) -> Mask:
    """Return (Z, H, W) which pixels are in each zone, one or more."""
    return np.stack([_filled(np.array(zone.points), height, width) for zone in zones])


def _filled(points: Float64, height: int, width: int) -> Mask:
    """Return (H, W) which pixels have their centre in a polygon (N, 2); one if none has."""
    middles, corners = np.arange(height) + 0.5, points * [width, height]
    crossed = np.zeros((height, width + 1), np.int32)  # sides, by the first pixel right of them
    for (x, y), (next_x, next_y) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        rows = np.flatnonzero((y <= middles) != (next_y <= middles))
        at = x + (middles[rows] - y) * (next_x - x) / (next_y - y or 1)
        crossed[rows, np.ceil(at - 0.5).clip(0, width).astype(int)] += 1
    filled: Mask = np.cumsum(crossed[:, :width], axis=1) % 2 == 1
    if not filled.any():
        column, row = (corners.mean(axis=0)).astype(int)
        filled[min(row, height - 1), min(column, width - 1)] = True
    return filled


@lru_cache(maxsize=8)
def _inside(zones: Zones, height: int, width: int) -> Mask:
    return np.asarray(_masks(zones, height, width).any(axis=0))


def share_inside(zones: Zones, height: int, width: int) -> float:
    """Return the share of a frame's pixels that are in a zone; 1 without zones."""
    return float(_inside(zones, height, width).mean()) if zones else 1.0


def blocks_inside(zones: Zones, blocks: tuple[int, int], finer: int = 16) -> Float64:
    """Return the shares (H, W) of blocks, of which a frame has (W, H), that are in a zone."""
    width, height = blocks
    inside = _inside(zones, height * finer, width * finer)
    shares: Float64 = inside.reshape(height, finer, width, finer).mean(axis=(1, 3))
    return shares


def only_inside(frames: Iterable[Frame], zones: Zones) -> Iterable[Frame]:
    """Return frames that are grey outside all zones; without zones the frames themselves."""
    return (_masked(frame, zones) for frame in frames) if zones else frames


def _masked(frame: Frame, zones: Zones) -> Frame:
    picture, luma = partial(_picture, frame, zones), partial(_luma, frame, zones)
    return Frame(picture, frame.seconds, luma, whole=frame)


def _picture(frame: Frame, zones: Zones) -> UInt8:
    whole = frame.picture()
    inside = _inside(zones, *whole.shape[:2])
    return np.where(inside[..., None], whole, np.uint8(_GREY))


def _luma(frame: Frame, zones: Zones) -> Luma | None:
    luma = frame.luma()
    if luma is None:
        return None
    plane, levels = luma
    grey = np.abs(levels.astype(int) - _GREY).argmin().astype(np.uint8)
    return np.where(_inside(zones, *plane.shape), plane, grey), levels


def zone_motion(gray: UInt8, zones: Zones) -> Float32:
    """Return the change (Z,) of each of several zones in consecutive frames (L + 1, h, w).

    It is the mean absolute difference over the frame, 0 … 1, inside the zone: a large zone
    in which little moves has little. Of less than two zones nobody asks: it is (0,).
    """
    if len(zones) < 2:
        return np.zeros(0, np.float32)
    changes = np.mean([cv2.absdiff(*pair) for pair in pairwise(gray)], axis=0)
    masks = _masks(zones, *changes.shape)
    sums = [changes[mask].sum() for mask in masks]
    return np.array(sums, np.float32) / np.float32(255 * changes.size)


class ZoneMotion(NamedTuple):
    """How much moves in each of Z zones, over T snippets."""

    names: Sequence[str]
    times: Float64  # (T,) in seconds
    motion: Float32  # (T, Z)

    def most(self, segments: ArrayLike) -> list[str]:
        """Return the zone in which most moves during each of segments (N, 2) in seconds.

        The usual motion there, the median of all snippets, does not count. A segment between two
        snippets has the nearer one's.
        """
        if not len(self.times):
            return [self.names[0]] * len(np.asarray(segments))
        beyond = self.motion.astype(np.float64) - np.median(self.motion, axis=0)
        sums = np.concatenate([np.zeros((1, len(self.names))), np.cumsum(beyond, axis=0)])
        found = []
        for start, end in np.asarray(segments, np.float64).reshape(-1, 2):
            first, last = np.searchsorted(self.times, (start, end))
            if first == last:
                first = np.abs(self.times - (start + end) / 2).argmin()
                last = first + 1
            found.append(self.names[int((sums[last] - sums[first]).argmax())])
        return found


def motion_among(facts: Mapping[str, Any], zones: Zones) -> ZoneMotion | None:
    """Return the motion of several zones among a video's facts; None of less than two."""
    if len(zones) < 2 or ZONE_MOTION not in facts:
        return None
    return ZoneMotion([zone.name for zone in zones], facts["time"], facts[ZONE_MOTION])


def motion_in_shards(shards: Iterable[Path], cameras: Cameras) -> dict[str, ZoneMotion]:
    """Return the motion of those videos of shards of features that have several zones.

    Raises:
        InputError: A shard cannot be read.
    """
    found = {}
    for path in shards:
        with open_h5(path) as file:
            for name, group in file.items():
                facts = {key: group[key][:] for key in ("time", ZONE_MOTION) if key in group}
                if motion := motion_among(facts, zones_of(cameras, name)):
                    found[name] = motion
    return found


class ZoneWatch:
    """The motion of the last snippets of a stream in its zones."""

    def __init__(self, zones: Zones) -> None:
        self.zones = zones
        self._kept: deque[tuple[float, Float32]] = deque(maxlen=_REMEMBERED)

    def add(self, seconds: float, gray: UInt8) -> None:
        """Take the frames (L + 1, h, w) of the next snippet."""
        if len(self.zones) > 1:
            self._kept.append((seconds, zone_motion(gray, self.zones)))

    def most(self, start: float, end: float) -> str | None:
        """Return the zone in which most moved between two times; None of less than two zones."""
        if len(self.zones) < 2 or not self._kept:
            return None
        times, motion = zip(*self._kept, strict=True)
        names = [zone.name for zone in self.zones]
        return ZoneMotion(names, np.array(times), np.stack(motion)).most([(start, end)])[0]

    def state_dict(self) -> list[tuple[float, list[float]]]:
        """Return the state from which another stream can resume."""
        return [(seconds, motion.tolist()) for seconds, motion in self._kept]

    def load_state_dict(self, state: Sequence[tuple[float, list[float]]]) -> None:
        """Resume from a state."""
        self._kept.clear()
        self._kept.extend((seconds, np.array(motion, np.float32)) for seconds, motion in state)
