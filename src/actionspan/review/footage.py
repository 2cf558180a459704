"""The features of the videos of a folder, each made once and kept in a file of its own."""

import argparse
import sys
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan import __version__
from actionspan.annotations.tables import Video
from actionspan.arrays import Float32
from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.features.collect import MOTION, STREAMS
from actionspan.features.one_pass import encode_each
from actionspan.features.settings import RescaleSettings, VideoSettings
from actionspan.features.steps import rescale
from actionspan.jobs.progress import progress
from actionspan.jobs.shards import ShardWork, videos_at_once
from actionspan.propose.results import source_of
from actionspan.storage.text import file_name
from actionspan.storage.writing import digest, open_h5, read_json, write_json
from actionspan.video.settings import BOUTS, CUTS
from actionspan.video.zones import WHOLE, ZONE_MOTION, Cameras, Zones, zones_attributes, zones_of

FACTS = (*MOTION, "time", CUTS, BOUTS, ZONE_MOTION)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A video and the file of its features."""

    video: Video
    shard: Path
    # size and time of the video's file, and the digest of its zones, if any
    source: Mapping[str, Any] = field(default_factory=dict)
    zones: Zones = ()

    @property
    def fingerprint(self) -> str:
        """The size and SHA-256 of the video's file, as `files.checksums` writes them."""
        return f"{self.source.get('bytes', 0)} {self.video.sha256}"

    def read(self) -> tuple[dict[str, Float32], dict[str, NDArray[Any]]]:
        """Return the (T, C) features of each stream, and the facts of the T snippets."""
        with open_h5(self.shard) as file:
            group = file[self.video.video_id]
            raw = {name: group[name][:] for name in STREAMS if name in group}
        return raw, self.facts()

    def facts(self) -> dict[str, NDArray[Any]]:
        """Return the facts of the T snippets alone."""
        with open_h5(self.shard) as file:
            group = file[self.video.video_id]
            facts = {name: group[name][:] for name in FACTS if name in group}
        facts["time"] = facts["time"].astype(np.float64)
        return facts

    def motion(self) -> Float32:
        """Return the magnitude of motion in each of 100 equal parts of the video."""
        facts = self.facts()
        how, seconds = RescaleSettings(), self.video.duration_seconds
        given = facts["flow_magnitude"], facts["time"], seconds, how.steps, how.method
        return rescale(*given, motion=True)


def encode_all(
    paths: Iterable[Path],
    folder: Path,
    how: ShardWork | None = None,
    settings: VideoSettings | None = None,
    cameras: Cameras = WHOLE,
) -> Generator[Encoded, None, None]:
    """Encode the videos that this version has not done; `video.error` is the reason for a failure.

    The zones of a video are found by its name among `cameras`; within others it is encoded again.

    `how.processes` are encoded at once, and as many paths are read ahead. Videos are yielded in the
    order of their paths.

    Raises:
        JobError: The disk is full, or the encoders cannot be made here.
    """
    settings, how = settings or VideoSettings(), how or ShardWork()
    line: deque[_Awaited] = deque()  # in the order of the paths; the first is not finished
    working: dict[int, _Awaited] = {}
    jobs = _Jobs()
    outcomes = encode_each(jobs, settings, how, cameras)

    def settled() -> Iterator[Encoded]:
        """Wait until a video is finished; yield the finished ones at the head of the line."""
        index, reason = next(outcomes)
        working.pop(index).finish(reason)
        while line and line[0].done:
            yield line.popleft().encoded

    with closing(outcomes):
        for path in paths:
            one = _looked_up(path, folder, settings, zones_of(cameras, path.stem))
            line.append(one)
            if not one.done:
                working[jobs.add((one.encoded.video, one.encoded.shard))] = one
            elif not working:
                yield line.popleft().encoded
            if len(working) >= how.processes:
                yield from settled()
        while working:
            yield from settled()


def encode_readable(
    paths: Collection[Path],
    folder: Path,
    how: ShardWork,
    settings: VideoSettings | None = None,
    cameras: Cameras = WHOLE,
) -> list[Encoded]:
    """Return the videos that can be encoded, and print a line for each of the others."""
    encoded = []
    encoding_all = encode_all(paths, folder, how, settings, cameras)
    for one in progress(encoding_all, "features", len(paths)):
        if one.video.error:
            print(f"{one.video.path}: {one.video.error}", file=sys.stderr)
        else:
            encoded.append(one)
    return encoded


def encoding(flags: argparse.Namespace, videos: int) -> ShardWork:
    """Return how to encode a number of videos by the flags `--jobs` and `--threads`."""
    processes = videos_at_once(flags.jobs, videos, flags.threads)
    return ShardWork(processes=processes, threads=flags.threads)


class _Jobs:
    """A queue of jobs as an iterator: it can be empty now and have more later."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Video, Path]] = []
        self._count = 0

    def add(self, job: tuple[Video, Path]) -> int:
        """Return the index of the job."""
        self._waiting.append(job)
        self._count += 1
        return self._count - 1

    def __iter__(self) -> "_Jobs":
        return self

    def __next__(self) -> tuple[Video, Path]:
        if not self._waiting:
            raise StopIteration
        return self._waiting.pop(0)


@dataclass
class _Awaited:
    """A video, and the sources and settings of its features."""

    encoded: Encoded
    made_of: Mapping[str, Any]
    done: bool

    def finish(self, reason: str) -> None:
        video = replace(self.encoded.video, error=reason)
        self.encoded, self.done = replace(self.encoded, video=video), True
        if not reason:  # an error can be temporary: the video is tried again
            known = {**asdict(video), "path": str(video.path)}
            note = self.encoded.shard.with_suffix(".json")
            write_json(note, {"made_of": self.made_of, "video": known})


def _looked_up(path: Path, folder: Path, settings: VideoSettings, zones: Zones) -> _Awaited:
    """Return a video with its finished features; probe it if it has none."""
    shard = folder / f"{file_name(path.stem)}.h5"
    source = source_with_zones(path, zones)
    made_of = {"by": digest(__version__, settings), **source}
    video, done = None, True
    with suppress(InputError, KeyError, TypeError):
        kept = read_json(shard.with_suffix(".json"))
        if kept["made_of"] == made_of and shard.is_file():
            video = Video(**{**kept["video"], "path": path})
    if video is None:
        video = probe_video(path)
        done = bool(video.error)
    encoded = Encoded(video=video, shard=shard, source=source, zones=zones)
    return _Awaited(encoded, made_of, done)


def source_with_zones(path: Path, zones: Zones = ()) -> dict[str, Any]:
    """Return the size and time of a file and its zones' digest, nothing if it cannot be read."""
    with suppress(InputError):
        return source_of(path) | zones_attributes(zones)
    return {}
